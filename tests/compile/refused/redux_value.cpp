// A sum of floats.
// prints: redux.sync takes std::uint32_t or std::int32_t (f32: reduce_min_f32, reduce_max_f32)

#include "tegula/arch/warp.hpp"

TEGULA_DEVICE float sum(float x) { return tegula::warp::reduce_add(x); }
