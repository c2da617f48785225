#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// Global memory holds nothing until the host or a kernel writes it.
///
/// An epilogue that adds to C reads C even where beta is 0. NaN times 0 is a NaN.
struct uninitialized_global : Kernel<32> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage&) const {
    float const alpha = 2, beta = 0;
    float value = alpha * ld_global<float>(p.in + lane_id());
    if (!p.repaired || beta != 0) value += beta * ld_global<float>(p.out + lane_id());
    st_global(p.out + lane_id(), value);
  }
};

// Report:
//   01_memory/uninitialized_global.hpp:14: kernel uninitialized_global, CTA (0, 0, 0), warp 0, lane
//     0: uninitialized_read: ld.global reads byte 0 of out, which nobody has written (32 times in
//     all)

}  // namespace tegula::broken
