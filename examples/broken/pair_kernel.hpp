#pragma once

#include "kernel.hpp"
#include "tegula/arch/tcgen05.hpp"

namespace tegula::broken {

/// Base of the kernels of a pair of CTAs: a warpgroup in each, operands A of 256 x 64 and B of
/// 32 x 64 bf16, of which each CTA has half.
struct PairKernel : Kernel<128> {
  static constexpr Dim3 cluster = {2, 1, 1}, grid = {2, 1, 1};
  static constexpr int both = 0b11;
  static constexpr MmaSpec op = tensor_memory_mma(DType::bf16, DType::bf16, DType::f32, 256, 32,
                                                  Major::k, Major::k, MmaOperands::ss, 2);
  static sim::Options options() { return {.generation = sim::Generation::sm100, .count = false}; }
  struct SharedStorage {
    SharedTile<std::uint16_t, swizzled_operand(16, 128, 64, 1)> a;
    SharedTile<std::uint16_t, swizzled_operand(16, 16, 64, 1)> b;
    Mbarrier done;
    Mbarrier empty;
    std::uint32_t tmem;
    template <class F> void name_buffers(F&& name) {
      name("A", a);
      name("B", b);
      name("done", done);
      name("empty", empty);
      name("tmem", tmem);
    }
  };

  /// Clears the CTA's operands, for the tensor cores to see.
  TEGULA_DEVICE static void clear(SharedStorage const& smem) {
    for (SharedAddr at = shared_address(smem.a.data); at < shared_address(&smem.done); at += 512)
      st_shared(at + static_cast<SharedAddr>(4 * thread_idx()), std::uint32_t{0});
    fence_proxy_async_shared();
  }
  /// Initialises both mbarriers, allocates 32 columns of both CTAs. They meet.
  TEGULA_DEVICE static TensorAddr begin(SharedStorage const& smem) {
    if (thread_idx() == 0) {
      mbarrier_init(shared_address(&smem.done), 1);
      mbarrier_init(shared_address(&smem.empty), 1);
      fence_mbarrier_init();
    }
    if (warp_id() == 0) tcgen05_alloc<32, 2>(shared_address(&smem.tmem));
    cluster::sync();
    return ld_shared<std::uint32_t>(shared_address(&smem.tmem));
  }
  /// Starts a product of the pair, by one thread.
  TEGULA_DEVICE static void multiply(SharedStorage const& smem, TensorAddr d) {
    tcgen05_mma<op>(d, matrix_descriptor<DescriptorForm::tcgen05>(tensor(smem.a)),
                    matrix_descriptor<DescriptorForm::tcgen05>(tensor(smem.b)), false);
  }
  /// Frees the CTA's columns, after all threads have come here.
  TEGULA_DEVICE static void end(TensorAddr base) {
    cluster::sync();
    if (warp_id() == 0) tcgen05_dealloc<32, 2>(base);
  }
};

}  // namespace tegula::broken
