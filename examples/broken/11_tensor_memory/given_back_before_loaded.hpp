#pragma once

#include "../tensor_memory_kernel.hpp"

namespace tegula::broken {

/// Accumulators are given back after the load of them is over.
///
/// Warp 1 arrives with its tcgen05_ld in flight, and the next product is started over what it
/// loads.
///
/// PTX ISA: tcgen05.wait::ld.
struct given_back_before_loaded : TensorMemoryKernel {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    TensorAddr const base = begin(smem);
    SharedAddr const done = shared_address(&smem.done), empty = shared_address(&smem.empty);
    if (thread_idx() == 0) multiply(smem, base), tcgen05_commit(done);
    if (warp_id() == 1) {
      mbarrier_wait_parity(done, 0);
      tcgen05_fence_after_thread_sync();
      std::uint32_t r[1];
      tcgen05_ld<TensorShape::lanes32_bits32, 1>(r, own(base));
      if (p.repaired) tcgen05_wait_ld();
      tcgen05_fence_before_thread_sync();
      mbarrier_arrive(empty);
      mbarrier_wait_parity(done, 1);
      tcgen05_wait_ld();
    } else if (thread_idx() == 0) {
      mbarrier_wait_parity(empty, 0);
      tcgen05_fence_after_thread_sync();
      multiply(smem, base);
      tcgen05_commit(done);
      mbarrier_wait_parity(done, 1);
    }
    end(base);
  }
};

// Report:
//   broken/tensor_memory_kernel.hpp:73: kernel given_back_before_loaded, CTA (0, 0, 0), warp 0,
//     lane 0: async_overwrite: tcgen05.mma writes lane 32, column 0 of tmem while a tcgen05.ld that
//     reads it is in flight that warp 1 issued (11_tensor_memory/given_back_before_loaded.hpp:22):
//     a tcgen05_wait_ld by the warp that issued it, and the tcgen05 fences around a barrier or an
//     mbarrier's phase for other warps, would order them

}  // namespace tegula::broken
