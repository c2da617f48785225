#pragma once

#include "kernel.hpp"
#include "tegula/arch/tcgen05.hpp"
#include "tegula/arch/tcgen05_cp.hpp"
#include "tegula/arch/tcgen05_scaled.hpp"

namespace tegula::broken {

/// Base of the kernels that multiply with block scales: a warpgroup, operands A of 128 x 32 and B
/// of 16 x 32 e4m3 in rows of 128 bytes, and room for scales of 128 rows.
struct ScaledKernel : Kernel<128> {
  static constexpr ScaledMmaSpec op = scaled_mma(DType::e4m3, DType::e4m3, DType::ue8m0, 32, 16);
  static constexpr TensorAddr of_a = 16, of_b = 20;  // columns of the scales, after D's
  static constexpr auto to_all_quarters = TensorCopyShape::rows32_bits128_warpx4;
  static sim::Options options() { return {.generation = sim::Generation::sm100, .count = false}; }
  struct SharedStorage {
    SharedTile<std::uint8_t, swizzled_operand(8, 128, 128, 1)> a;
    SharedTile<std::uint8_t, swizzled_operand(8, 16, 128, 1)> b;
    alignas(128) std::uint32_t scales[128][4];
    Mbarrier done;
    std::uint32_t tmem;
    template <class F> void name_buffers(F&& name) {
      name("A", a);
      name("B", b);
      name("scales", scales);
      name("done", done);
      name("tmem", tmem);
    }
  };

  /// Clears both operands, writes scales of 1, 2, 4 ... to the runs of 32 rows, initialises the
  /// mbarrier, allocates 32 columns.
  TEGULA_DEVICE static TensorAddr begin(SharedStorage const& smem) {
    int const thread = thread_idx();
    for (SharedAddr at = shared_address(smem.a.data); at < shared_address(smem.scales); at += 512)
      st_shared(at + static_cast<SharedAddr>(4 * thread), std::uint32_t{0});
    for (int i = 0; i < 4; ++i)
      st_shared(shared_address(smem.scales) + static_cast<SharedAddr>(16 * thread + 4 * i),
                static_cast<std::uint32_t>(127 + thread / 32));
    if (thread == 0) {
      mbarrier_init(shared_address(&smem.done), 1);
      fence_mbarrier_init();
    }
    if (warp_id() == 0) tcgen05_alloc<32>(shared_address(&smem.tmem));
    fence_proxy_async_shared();
    cta::sync();
    return ld_shared<std::uint32_t>(shared_address(&smem.tmem));
  }
  /// Starts a copy of scales to four columns, by one thread.
  template <TensorCopyShape S = to_all_quarters>
  TEGULA_DEVICE static void copy(SharedStorage const& smem, TensorAddr to,
                                 SourceLocation where = SourceLocation::current()) {
    tcgen05_cp<S>(to, rows16_descriptor(shared_address(smem.scales)), where);
  }
  /// Starts a product, by one thread.
  TEGULA_DEVICE static void multiply(SharedStorage const& smem, TensorAddr base,
                                     SourceLocation where = SourceLocation::current()) {
    tcgen05_mma_scaled<op>(base, matrix_descriptor<DescriptorForm::tcgen05>(tensor(smem.a)),
                           matrix_descriptor<DescriptorForm::tcgen05>(tensor(smem.b)), base + of_a,
                           base + of_b, {}, false, where);
  }
  /// Frees what begin() allocated, after all threads have come here.
  TEGULA_DEVICE static void end(TensorAddr base) {
    cta::sync();
    if (warp_id() == 0) tcgen05_dealloc<32>(base);
  }
};

}  // namespace tegula::broken
