#pragma once

#include "../tensor_memory_kernel.hpp"
#include "tegula/arch/tcgen05_cp.hpp"

namespace tegula::broken {

/// A shift touches all 128 lanes: what other warps stored must be ordered before it.
///
/// The warps meet at a barrier, but their stores stay behind: the fence before it is missing.
///
/// PTX ISA: tcgen05.fence; tcgen05.shift.
struct shifted_before_the_stores : TensorMemoryKernel {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    TensorAddr const base = begin(smem);
    clear_columns(base);
    if (p.repaired) tcgen05_fence_before_thread_sync();
    cta::sync();
    if (thread_idx() == 0) {
      tcgen05_fence_after_thread_sync();
      tcgen05_shift_down(base);
      commit_and_wait(smem, 0);
    }
    end(base);
  }
};

// Report:
//   11_tensor_memory/shifted_before_the_stores.hpp:21: kernel shifted_before_the_stores, CTA (0, 0,
//     0), warp 0, lane 0: data_race: tcgen05.shift reads lane 32, column 0 of tmem, which warp 1
//     wrote by tcgen05.st (11_tensor_memory/shifted_before_the_stores.hpp:16), and no
//     tcgen05.fence::before_thread_sync followed: a tcgen05_fence_before_thread_sync by warp 1
//     between the tcgen05.st and its next release would order them (2 times in all)

}  // namespace tegula::broken
