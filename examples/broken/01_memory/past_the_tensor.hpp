#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// An access to global memory lies within one allocation.
///
/// The grid is rounded up to whole CTAs; the last one's threads must stop where the tensor does.
struct past_the_tensor : Kernel<96> {
  static constexpr Dim3 grid = {11, 1, 1};

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage&) const {
    int const i = threads * block_idx().x + thread_idx();
    if (p.repaired && i >= 1024) return;
    st_global(p.out + i, 2 * ld_global<float>(p.in + i));
  }
};

// Report:
//   01_memory/past_the_tensor.hpp:16: kernel past_the_tensor, CTA (10, 0, 0), warp 2, lane 0:
//     out_of_bounds: ld.global of 4 bytes at byte 4096 of in, which has 4096 bytes (32 times in
//     all)
//   01_memory/past_the_tensor.hpp:16: kernel past_the_tensor, CTA (10, 0, 0), warp 2, lane 0:
//     out_of_bounds: st.global of 4 bytes at byte 4096 of out, which has 4096 bytes (32 times in
//     all)

}  // namespace tegula::broken
