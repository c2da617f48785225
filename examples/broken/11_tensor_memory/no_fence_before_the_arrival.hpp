#pragma once

#include "../tensor_memory_kernel.hpp"

namespace tegula::broken {

/// Between an access to tensor memory and what tells another thread of it stands a fence.
///
/// Warp 1 has loaded the accumulators and says so; the next product is started over them.
///
/// PTX ISA: tcgen05.fence::before_thread_sync.
struct no_fence_before_the_arrival : TensorMemoryKernel {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    TensorAddr const base = begin(smem);
    SharedAddr const done = shared_address(&smem.done), empty = shared_address(&smem.empty);
    if (thread_idx() == 0) multiply(smem, base), tcgen05_commit(done);
    if (warp_id() == 1) {
      mbarrier_wait_parity(done, 0);
      tcgen05_fence_after_thread_sync();
      std::uint32_t r[1];
      tcgen05_ld<TensorShape::lanes32_bits32, 1>(r, own(base));
      tcgen05_wait_ld();
      if (p.repaired) tcgen05_fence_before_thread_sync();
      mbarrier_arrive(empty);
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
//   broken/tensor_memory_kernel.hpp:73: kernel no_fence_before_the_arrival, CTA (0, 0, 0), warp 0,
//     lane 0: data_race: tcgen05.mma writes lane 32, column 0 of tmem, which warp 1 read by
//     tcgen05.ld (11_tensor_memory/no_fence_before_the_arrival.hpp:21), and no
//     tcgen05.fence::before_thread_sync followed: a tcgen05_fence_before_thread_sync by warp 1
//     between the tcgen05.ld and its next release would order them

}  // namespace tegula::broken
