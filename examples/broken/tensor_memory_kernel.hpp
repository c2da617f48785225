#pragma once

#include "kernel.hpp"
#include "tegula/arch/tcgen05.hpp"

namespace tegula::broken {

/// Base of the kernels that use tensor memory: a warpgroup, operands A of 128 x 64 and B of 16 x 64
/// bf16.
struct TensorMemoryKernel : Kernel<128> {
  static constexpr MmaSpec op = tensor_memory_mma(DType::bf16, DType::bf16, DType::f32, 128, 16);
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

  /// Clears both operands, initialises both mbarriers (`empty` for a warp), allocates 32 columns.
  TEGULA_DEVICE static TensorAddr begin(SharedStorage const& smem) {
    for (SharedAddr at = shared_address(smem.a.data); at < shared_address(&smem.done); at += 512)
      st_shared(at + static_cast<SharedAddr>(4 * thread_idx()), std::uint32_t{0});
    if (thread_idx() == 0) {
      mbarrier_init(shared_address(&smem.done), 1);
      mbarrier_init(shared_address(&smem.empty), 32);
      fence_mbarrier_init();
    }
    if (warp_id() == 0) tcgen05_alloc<32>(shared_address(&smem.tmem));
    fence_proxy_async_shared();
    cta::sync();
    return ld_shared<std::uint32_t>(shared_address(&smem.tmem));
  }
  /// Starts a product, by one thread.
  TEGULA_DEVICE static void multiply(SharedStorage const& smem, TensorAddr d) {
    tcgen05_mma<op>(d, matrix_descriptor<DescriptorForm::tcgen05>(tensor(smem.a)),
                    matrix_descriptor<DescriptorForm::tcgen05>(tensor(smem.b)), false);
  }
  /// The address of the warp's own lanes.
  TEGULA_DEVICE static TensorAddr own(TensorAddr base) {
    return base + tensor_address(32 * warp_id(), 0);
  }
  /// Frees what begin() allocated, after all threads have come here.
  TEGULA_DEVICE static void end(TensorAddr base) {
    cta::sync();
    if (warp_id() == 0) tcgen05_dealloc<32>(base);
  }
};

}  // namespace tegula::broken
