#pragma once

#include "../stationary_kernel.hpp"

namespace tegula::broken {

/// The columns of a weight-stationary product lie in parts, each in lanes of its own.
///
/// Of m 64 the upper half of a row's columns is in lane 64 + i. The loads look for it in the
/// columns behind the lower half.
///
/// PTX ISA: tcgen05 data path layout E.
struct columns_in_other_lanes : StationaryKernel {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    TensorAddr const base = begin<64>(smem);
    SharedAddr const done = shared_address(&smem.done);
    if (thread_idx() == 0) multiply(smem, base), tcgen05_commit(done);
    mbarrier_wait_parity(done, 0);
    tcgen05_fence_after_thread_sync();
    TensorAddr const own = base + tensor_address(32 * warp_id(), 0);
    for (int column = 0; column < (p.repaired ? 32 : 64); column += 32) {
      if (!p.repaired && warp_id() >= 2) break;  // row i is taken to be in lane i alone
      float r[32];
      tcgen05_ld<TensorShape::lanes32_bits32, 32>(r, own + tensor_address(0, column));
      tcgen05_wait_ld();
    }
    tcgen05_fence_before_thread_sync();
    end<64>(base);
  }
};

// Report:
//   11_tensor_memory/columns_in_other_lanes.hpp:24: kernel columns_in_other_lanes, CTA (0, 0, 0),
//     warp 0: uninitialized_read: tcgen05.ld reads lane 0, column 32 of tmem, which nobody has
//     written (2 times in all)

}  // namespace tegula::broken
