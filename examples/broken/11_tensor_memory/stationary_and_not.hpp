#pragma once

#include "../stationary_kernel.hpp"

namespace tegula::broken {

/// A weight-stationary product and one that is not are not performed in their order.
///
/// Both write the same columns, and nobody waits for the first.
///
/// PTX ISA: pipelined tcgen05 instructions.
struct stationary_and_not : StationaryKernel {
  static constexpr MmaSpec other = tensor_memory_mma(DType::bf16, DType::bf16, DType::f32, 64, 32);

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    TensorAddr const base = begin(smem);
    if (thread_idx() == 0) {
      multiply(smem, base);
      if (p.repaired) commit_and_wait(smem, 0);
      tcgen05_mma<other>(base, of_a(smem), of_b(smem), false);
      commit_and_wait(smem, p.repaired ? 1 : 0);
    }
    end(base);
  }
};

// Report:
//   11_tensor_memory/stationary_and_not.hpp:20: kernel stationary_and_not, CTA (0, 0, 0), warp 0,
//     lane 0: async_overwrite: tcgen05.mma writes lane 0, column 0 of tmem while a tcgen05.mma that
//     writes it is in flight that warp 0 lane 0 issued
//     (11_tensor_memory/stationary_and_not.hpp:18); products of different shapes are not performed
//     in their order: a tcgen05_commit after it by that thread, and a wait for its mbarrier, would
//     order them

}  // namespace tegula::broken
