// A store that would fetch into L2.
// prints: st.global fetches nothing into L2: prefetch is of loads

#include "tegula/arch/global.hpp"

using namespace tegula;

constexpr CacheHint kHint{.prefetch = L2Prefetch::b128};

TEGULA_DEVICE void store(float* to, float value) { st_global<kHint>(to, value); }
