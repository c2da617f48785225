#pragma once

#include "../tensor_memory_kernel.hpp"
#include "tegula/arch/tcgen05_cp.hpp"

namespace tegula::broken {

/// Rows that a tcgen05.shift moves are there when the mbarrier of a commit after it says so.
///
/// The warps load them after a barrier of the CTA, which the tensor core knows nothing of.
///
/// PTX ISA: tcgen05.shift; tcgen05.commit.
struct shift_not_waited_for : TensorMemoryKernel {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    TensorAddr const base = begin(smem);
    SharedAddr const done = shared_address(&smem.done);
    clear_columns(base);
    tcgen05_fence_before_thread_sync();
    cta::sync();
    if (thread_idx() == 0) {
      tcgen05_fence_after_thread_sync();
      tcgen05_shift_down(base);
      tcgen05_commit(done);
    }
    cta::sync();
    if (p.repaired) mbarrier_wait_parity(done, 0);
    tcgen05_fence_after_thread_sync();
    std::uint32_t r[8];
    tcgen05_ld<TensorShape::lanes32_bits32, 8>(r, own(base));
    tcgen05_wait_ld();
    mbarrier_wait_parity(done, 0);
    end(base);
  }
};

// Report:
//   11_tensor_memory/shift_not_waited_for.hpp:29: kernel shift_not_waited_for, CTA (0, 0, 0), warp
//     1: async_read_early: tcgen05.ld reads lane 32, column 0 of tmem while a tcgen05.shift that
//     writes it is in flight that warp 0 lane 0 issued
//     (11_tensor_memory/shift_not_waited_for.hpp:22): a wait for phase 0 of element 0 of done, of
//     parity 0, at which the tcgen05_commit after it (11_tensor_memory/shift_not_waited_for.hpp:23)
//     arrives, would order them (4 times in all)

}  // namespace tegula::broken
