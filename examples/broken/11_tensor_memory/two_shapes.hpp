#pragma once

#include "../tensor_memory_kernel.hpp"

namespace tegula::broken {

/// Products of one thread are performed in their order where they are of one shape.
///
/// A product of 64 rows follows one of 128 rows to the same columns.
///
/// PTX ISA: pipelined tcgen05 instructions.
struct two_shapes : TensorMemoryKernel {
  static constexpr MmaSpec half = tensor_memory_mma(DType::bf16, DType::bf16, DType::f32, 64, 16);

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    TensorAddr const base = begin(smem);
    if (thread_idx() == 0) {
      multiply(smem, base);
      if (p.repaired) commit_and_wait(smem, 0);
      tcgen05_mma<half>(base, matrix_descriptor<DescriptorForm::tcgen05>(tensor(smem.a)),
                        matrix_descriptor<DescriptorForm::tcgen05>(tensor(smem.b)), false);
      commit_and_wait(smem, p.repaired ? 1 : 0);
    }
    end(base);
  }
};

// Report:
//   11_tensor_memory/two_shapes.hpp:20: kernel two_shapes, CTA (0, 0, 0), warp 0, lane 0:
//     async_overwrite: tcgen05.mma writes lane 0, column 0 of tmem while a tcgen05.mma that writes
//     it is in flight that warp 0 lane 0 issued (broken/tensor_memory_kernel.hpp:73); products of
//     different shapes are not performed in their order: a tcgen05_commit after it by that thread,
//     and a wait for its mbarrier, would order them

}  // namespace tegula::broken
