// A width that is no power of two.
// prints: a shuffle's width is 1, 2, 4, 8, 16 or 32 lanes
// prints: 12

#include "tegula/arch/warp.hpp"

TEGULA_DEVICE float neighbour(float x) { return tegula::warp::shfl_up<12>(x, 1); }
