#pragma once

#include "../tensor_memory_kernel.hpp"

namespace tegula::broken {

/// A tcgen05_mma reads A from tensor memory until its commit has arrived.
///
/// The warps store the next A over it, as attention's softmax would its next P, while the product
/// is in flight.
///
/// PTX ISA: tcgen05.mma, tcgen05.commit.
struct stored_over_a : TensorMemoryKernel {
  static constexpr MmaSpec from_tensor_memory = tensor_memory_mma(
      DType::bf16, DType::bf16, DType::f32, 128, 16, Major::k, Major::k, MmaOperands::ts);
  static constexpr int a = 16;  // its first column, behind those of D

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    TensorAddr const base = begin(smem);
    SharedAddr const done = shared_address(&smem.done);
    store(base);
    tcgen05_fence_before_thread_sync();
    cta::sync();
    if (thread_idx() == 0) {
      tcgen05_fence_after_thread_sync();
      tcgen05_mma_ts<from_tensor_memory>(
          base, base + a, matrix_descriptor<DescriptorForm::tcgen05>(tensor(smem.b)), false);
      tcgen05_commit(done);
    }
    cta::sync();
    if (p.repaired) mbarrier_wait_parity(done, 0);
    tcgen05_fence_after_thread_sync();
    store(base);
    mbarrier_wait_parity(done, 0);
    end(base);
  }

 private:
  /// The warp's rows of A: eight columns of two values each.
  TEGULA_DEVICE static void store(TensorAddr base) {
    std::uint32_t const row[8] = {};
    tcgen05_st<TensorShape::lanes32_bits32, 8>(row, own(base) + a);
    tcgen05_wait_st();
  }
};

// Report:
//   11_tensor_memory/stored_over_a.hpp:42: kernel stored_over_a, CTA (0, 0, 0), warp 1:
//     async_overwrite: tcgen05.st writes lane 32, column 16 of tmem while a tcgen05.mma that reads
//     it is in flight that warp 0 lane 0 issued (11_tensor_memory/stored_over_a.hpp:26): a wait for
//     phase 0 of element 0 of done, of parity 0, at which the tcgen05_commit after it
//     (11_tensor_memory/stored_over_a.hpp:28) arrives, would order them (4 times in all)

}  // namespace tegula::broken
