// A load through the read-only path with an operator that only ld.global has.
// prints: ld.global.nc takes the cache operators ca, cg and cs

#include "tegula/arch/global.hpp"

using namespace tegula;

constexpr CacheHint kHint{.op = CacheOperator::cv};

TEGULA_DEVICE float load(float const* from) { return ld_global_nc<float, kHint>(from); }
