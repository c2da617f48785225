#pragma once

#include "../tensor_memory_kernel.hpp"

namespace tegula::broken {

/// A commit is for the products that its own thread has started.
///
/// Thread 0 multiplies, and a thread of another warp commits: it arrives at once.
///
/// PTX ISA: tcgen05.commit.
struct committed_by_another : TensorMemoryKernel {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    TensorAddr const base = begin(smem);
    SharedAddr const done = shared_address(&smem.done);
    if (thread_idx() == 0) multiply(smem, base);
    if (thread_idx() == (p.repaired ? 0 : 32)) tcgen05_commit(done);
    mbarrier_wait_parity(done, 0);
    tcgen05_fence_after_thread_sync();
    float r[1];
    tcgen05_ld<TensorShape::lanes32_bits32, 1>(r, own(base));
    tcgen05_wait_ld();
    st_global(p.out + thread_idx(), r[0]);
    tcgen05_fence_before_thread_sync();
    end(base);
  }
};

// Report:
//   11_tensor_memory/committed_by_another.hpp:21: kernel committed_by_another, CTA (0, 0, 0), warp
//     2: async_read_early: tcgen05.ld reads lane 64, column 0 of tmem while a tcgen05.mma that
//     writes it is in flight that warp 0 lane 0 issued (broken/tensor_memory_kernel.hpp:73): a
//     tcgen05_commit after it by that thread, and a wait for its mbarrier, would order them (4
//     times in all)
//   broken/tensor_memory_kernel.hpp:79: kernel committed_by_another, CTA (0, 0, 0), warp 0:
//     data_race: tcgen05.dealloc of columns 0 to 31 of tensor memory, while a tcgen05.mma of them
//     is in flight (broken/tensor_memory_kernel.hpp:73): a tcgen05_commit after it by that thread,
//     and a wait for its mbarrier, would order them
//   broken/tensor_memory_kernel.hpp:73: kernel committed_by_another, CTA (0, 0, 0), warp 0, lane 0:
//     exited_cta: the CTA exits while a tcgen05.mma out of its shared memory, from row 0, column 0
//     of B on, has not been waited for: a tcgen05_commit after it by that thread, and a wait for
//     its mbarrier, would order them

}  // namespace tegula::broken
