#pragma once

#include "tensor_memory_kernel.hpp"

namespace tegula::broken {

/// Base of the kernels whose products are weight-stationary: a warpgroup, A and B of 64 x 16 bf16,
/// D of 64 x 64 in 32 columns: of row i the first 32 elements in lane i, the others in lane 64 + i.
struct StationaryKernel : Kernel<128> {
  static constexpr MmaSpec op = weight_stationary_mma(DType::bf16, DType::bf16, DType::f32, 64, 64);
  static sim::Options options() { return {.generation = sim::Generation::sm100, .count = false}; }
  struct SharedStorage {
    SharedTile<std::uint16_t, swizzled_operand(16, 64, 16, 1)> a;
    SharedTile<std::uint16_t, swizzled_operand(16, 64, 16, 1)> b;
    Mbarrier done;
    std::uint32_t tmem;
    template <class F> void name_buffers(F&& name) {
      name("A", a);
      name("B", b);
      name("done", done);
      name("tmem", tmem);
    }
  };

  /// Fills both operands with ones, initialises the mbarrier, allocates `Columns` columns.
  template <int Columns = 32> TEGULA_DEVICE static TensorAddr begin(SharedStorage const& smem) {
    constexpr std::uint32_t ones = 0x3f803f80;
    for (SharedAddr at = shared_address(smem.a.data); at < shared_address(&smem.done); at += 512)
      st_shared(at + static_cast<SharedAddr>(4 * thread_idx()), ones);
    if (thread_idx() == 0) {
      mbarrier_init(shared_address(&smem.done), 1);
      fence_mbarrier_init();
    }
    if (warp_id() == 0) tcgen05_alloc<Columns>(shared_address(&smem.tmem));
    fence_proxy_async_shared();
    cta::sync();
    return ld_shared<std::uint32_t>(shared_address(&smem.tmem));
  }
  TEGULA_DEVICE static std::uint64_t of_a(SharedStorage const& smem) {
    return matrix_descriptor<DescriptorForm::tcgen05>(tensor(smem.a));
  }
  TEGULA_DEVICE static std::uint64_t of_b(SharedStorage const& smem) {
    return matrix_descriptor<DescriptorForm::tcgen05>(tensor(smem.b));
  }
  /// Starts a product that does so with collector buffer 0 of B, by one thread.
  template <Collector C = Collector::discard>
  TEGULA_DEVICE static void multiply(SharedStorage const& smem, TensorAddr d,
                                     SourceLocation where = SourceLocation::current()) {
    tcgen05_mma_collected<op, C>(d, of_a(smem), of_b(smem), false, where);
  }
  /// Frees what begin() allocated, after all threads have come here.
  template <int Columns = 32> TEGULA_DEVICE static void end(TensorAddr base) {
    cta::sync();
    if (warp_id() == 0) tcgen05_dealloc<Columns>(base);
  }
};

}  // namespace tegula::broken
