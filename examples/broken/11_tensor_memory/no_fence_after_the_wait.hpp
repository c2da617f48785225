#pragma once

#include "../tensor_memory_kernel.hpp"

namespace tegula::broken {

/// Between a wait for another thread and an access to tensor memory stands a fence.
///
/// The warps wait for the product, and load it without one.
///
/// PTX ISA: tcgen05.fence::after_thread_sync.
struct no_fence_after_the_wait : TensorMemoryKernel {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    TensorAddr const base = begin(smem);
    SharedAddr const done = shared_address(&smem.done);
    if (thread_idx() == 0) multiply(smem, base), tcgen05_commit(done);
    mbarrier_wait_parity(done, 0);
    if (p.repaired) tcgen05_fence_after_thread_sync();
    std::uint32_t r[1];
    tcgen05_ld<TensorShape::lanes32_bits32, 1>(r, own(base));
    tcgen05_wait_ld();
    end(base);
  }
};

// Report:
//   11_tensor_memory/no_fence_after_the_wait.hpp:20: kernel no_fence_after_the_wait, CTA (0, 0, 0),
//     warp 2: data_race: tcgen05.ld reads lane 64, column 0 of tmem, which warp 0 lane 0 wrote by
//     tcgen05.mma (broken/tensor_memory_kernel.hpp:73), and no tcgen05.fence::after_thread_sync
//     stands between: a tcgen05_fence_after_thread_sync by warp 2 before the tcgen05.ld would order
//     them (3 times in all)

}  // namespace tegula::broken
