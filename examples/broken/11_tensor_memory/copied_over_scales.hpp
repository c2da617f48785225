#pragma once

#include "../scaled_kernel.hpp"

namespace tegula::broken {

/// A product waits for the copies before it, but a copy for no product.
///
/// The next scales are copied to the columns from which a product in flight reads its own.
///
/// PTX ISA: pipelined tcgen05 instructions.
struct copied_over_scales : ScaledKernel {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    TensorAddr const base = begin(smem);
    SharedAddr const done = shared_address(&smem.done);
    if (thread_idx() == 0) {
      copy(smem, base + of_a);
      copy(smem, base + of_b);
      multiply(smem, base);
      if (p.repaired) {
        tcgen05_commit(done);
        mbarrier_wait_parity(done, 0);
        tcgen05_fence_after_thread_sync();
      }
      copy(smem, base + of_a);
      multiply(smem, base);
      tcgen05_commit(done);
      mbarrier_wait_parity(done, p.repaired ? 1 : 0);
    }
    end(base);
  }
};

// Report:
//   11_tensor_memory/copied_over_scales.hpp:25: kernel copied_over_scales, CTA (0, 0, 0), warp 0,
//     lane 0: async_overwrite: tcgen05.cp writes lane 0, column 16 of tmem while a tcgen05.cp that
//     writes it is in flight that warp 0 lane 0 issued
//     (11_tensor_memory/copied_over_scales.hpp:17); of one thread's copies and products, only a
//     product after a copy waits for it: a tcgen05_commit after it by that thread, and a wait for
//     its mbarrier, would order them

}  // namespace tegula::broken
