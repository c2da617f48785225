// A cache operator beside a priority in L1: ld.global takes one of the two.
// prints: an access takes a cache operator (op) or a priority in L1 (l1), not both

#include "tegula/arch/global.hpp"

using namespace tegula;

constexpr CacheHint kHint{.op = CacheOperator::cg, .l1 = L1Eviction::evict_last};

TEGULA_DEVICE float load(float const* from) { return ld_global<float, kHint>(from); }
