#pragma once

#include "../tensor_memory_kernel.hpp"

namespace tegula::broken {

/// Accumulators are there when the mbarrier of a tcgen05_commit says so.
///
/// The warps load them after a barrier of the CTA, which orders threads, not the tensor core.
///
/// PTX ISA: tcgen05.commit.
struct product_not_waited_for : TensorMemoryKernel {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    TensorAddr const base = begin(smem);
    SharedAddr const done = shared_address(&smem.done);
    if (thread_idx() == 0) multiply(smem, base), tcgen05_commit(done);
    cta::sync();
    if (p.repaired) mbarrier_wait_parity(done, 0);
    tcgen05_fence_after_thread_sync();
    std::uint32_t r[1];
    tcgen05_ld<TensorShape::lanes32_bits32, 1>(r, own(base));
    tcgen05_wait_ld();
    mbarrier_wait_parity(done, 0);
    end(base);
  }
};

// Report:
//   11_tensor_memory/product_not_waited_for.hpp:21: kernel product_not_waited_for, CTA (0, 0, 0),
//     warp 2: async_read_early: tcgen05.ld reads lane 64, column 0 of tmem while a tcgen05.mma that
//     writes it is in flight that warp 0 lane 0 issued (broken/tensor_memory_kernel.hpp:73): a wait
//     for phase 0 of element 0 of done, of parity 0, at which the tcgen05_commit after it
//     (11_tensor_memory/product_not_waited_for.hpp:16) arrives, would order them (4 times in all)

}  // namespace tegula::broken
