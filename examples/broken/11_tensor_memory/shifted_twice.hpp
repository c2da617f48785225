#pragma once

#include "../tensor_memory_kernel.hpp"
#include "tegula/arch/tcgen05_cp.hpp"

namespace tegula::broken {

/// Of one thread, shifts are performed in no order; products and .4x256b copies wait for them.
///
/// A second shift moves the rows on while the first is at work on them.
///
/// PTX ISA: tcgen05.shift; pipelined tcgen05 instructions.
struct shifted_twice : TensorMemoryKernel {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    TensorAddr const base = begin(smem);
    clear_columns(base);
    tcgen05_fence_before_thread_sync();
    cta::sync();
    if (thread_idx() == 0) {
      tcgen05_fence_after_thread_sync();
      tcgen05_shift_down(base);
      if (p.repaired) commit_and_wait(smem, 0);
      tcgen05_shift_down(base);
      commit_and_wait(smem, p.repaired ? 1 : 0);
    }
    end(base);
  }
};

// Report:
//   11_tensor_memory/shifted_twice.hpp:23: kernel shifted_twice, CTA (0, 0, 0), warp 0, lane 0:
//     async_read_early: tcgen05.shift reads lane 0, column 0 of tmem while a tcgen05.shift that
//     writes it is in flight that warp 0 lane 0 issued (11_tensor_memory/shifted_twice.hpp:21); of
//     one thread's shifts and copies, only a copy of .4x256b after a shift waits for it: a
//     tcgen05_commit after it by that thread, and a wait for its mbarrier, would order them
//   11_tensor_memory/shifted_twice.hpp:23: kernel shifted_twice, CTA (0, 0, 0), warp 0, lane 0:
//     async_overwrite: tcgen05.shift writes lane 0, column 0 of tmem while a tcgen05.shift that
//     writes it is in flight that warp 0 lane 0 issued (11_tensor_memory/shifted_twice.hpp:21); of
//     one thread's shifts and copies, only a copy of .4x256b after a shift waits for it: a
//     tcgen05_commit after it by that thread, and a wait for its mbarrier, would order them

}  // namespace tegula::broken
