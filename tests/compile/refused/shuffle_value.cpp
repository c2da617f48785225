// A value of twelve bytes.
// prints: a shuffle moves a trivially copyable value of 1, 2, 4 or 8 bytes

#include "tegula/arch/warp.hpp"

struct Three {
  float x, y, z;
};
TEGULA_DEVICE Three first(Three t) { return tegula::warp::shfl(t, 0); }
