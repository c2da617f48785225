#pragma once

#include "kernel.hpp"
#include "tegula/arch/tcgen05.hpp"

namespace tegula::broken {

/// Waits for all that the calling thread has started, by a commit that completes phase `phase` of
/// the mbarrier `done`.
template <class Storage>
TEGULA_DEVICE void commit_and_wait(Storage const& smem, int phase,
                                   SourceLocation where = SourceLocation::current()) {
  SharedAddr const done = shared_address(&smem.done);
  tcgen05_commit(done, where);
  mbarrier_wait_parity(done, phase, where);
  tcgen05_fence_after_thread_sync(where);
}

/// Base of the kernels that use tensor memory, of one CTA or of a pair: a warpgroup in each, and of
/// the operands 128 rows of A and 16 of B, 64 bf16 each.
template <int Ctas> struct TensorCoreKernel : Kernel<128> {
  static constexpr Dim3 cluster = {Ctas, 1, 1}, grid = {Ctas, 1, 1};
  static constexpr MmaSpec op =
      tensor_memory_mma(DType::bf16, DType::bf16, DType::f32, 128 * Ctas, 16 * Ctas, Major::k,
                        Major::k, MmaOperands::ss, Ctas);
  static sim::Options options() { return {.generation = sim::Generation::sm100, .count = false}; }
  struct SharedStorage {
    SharedTile<std::uint16_t, swizzled_operand(16, 128, 64, 1)> a;
    SharedTile<std::uint16_t, swizzled_operand(16, 16, 64, 1)> b;
    Mbarrier done;
    Mbarrier full;
    Mbarrier empty;
    std::uint32_t tmem;
    template <class F> void name_buffers(F&& name) {
      name("A", a);
      name("B", b);
      name("done", done);
      name("full", full);
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
  /// All threads of the CTA, or of the pair.
  TEGULA_DEVICE static void meet() {
    if constexpr (Ctas == 1) {
      cta::sync();
    } else {
      cluster::sync();
    }
  }
  /// Initialises the mbarriers, `empty` for so many arrivals; allocates 32 columns in each CTA.
  /// They meet.
  TEGULA_DEVICE static TensorAddr begin(SharedStorage const& smem, int arrivals) {
    if (thread_idx() == 0) {
      mbarrier_init(shared_address(&smem.done), 1);
      mbarrier_init(shared_address(&smem.full), 1);
      mbarrier_init(shared_address(&smem.empty), arrivals);
      fence_mbarrier_init();
    }
    if (warp_id() == 0) tcgen05_alloc<32, Ctas>(shared_address(&smem.tmem));
    meet();
    return ld_shared<std::uint32_t>(shared_address(&smem.tmem));
  }
  /// Starts a product, by one thread.
  TEGULA_DEVICE static void multiply(SharedStorage const& smem, TensorAddr d) {
    tcgen05_mma<op>(d, matrix_descriptor<DescriptorForm::tcgen05>(tensor(smem.a)),
                    matrix_descriptor<DescriptorForm::tcgen05>(tensor(smem.b)), false);
  }
  /// Frees what begin() allocated, after all threads have come here.
  TEGULA_DEVICE static void end(TensorAddr base) {
    meet();
    if (warp_id() == 0) tcgen05_dealloc<32, Ctas>(base);
  }
};

struct TensorMemoryKernel : TensorCoreKernel<1> {
  /// With both operands cleared, and `empty` for a warp.
  TEGULA_DEVICE static TensorAddr begin(SharedStorage const& smem) {
    clear(smem);
    return TensorCoreKernel::begin(smem, 32);
  }
  /// Stores zeros to eight columns of the warp's own lanes.
  TEGULA_DEVICE static void clear_columns(TensorAddr base,
                                          SourceLocation where = SourceLocation::current()) {
    std::uint32_t const zeros[8] = {};
    tcgen05_st<TensorShape::lanes32_bits32, 8>(zeros, own(base), where);
    tcgen05_wait_st(where);
  }
  /// The address of the warp's own lanes.
  TEGULA_DEVICE static TensorAddr own(TensorAddr base) {
    return base + tensor_address(32 * warp_id(), 0);
  }
};

struct PairKernel : TensorCoreKernel<2> {
  static constexpr int both = 0b11;  // of tcgen05_commit_multicast
  TEGULA_DEVICE static TensorAddr begin(SharedStorage const& smem) {
    return TensorCoreKernel::begin(smem, 1);
  }
};

/// Two pairs, CTAs 0 and 1, 2 and 3, that multiply by the same B: CTA 0 loads eight rows of the
/// first half for both even CTAs.
struct TwoPairsKernel : PairKernel {
  static constexpr Dim3 cluster = {4, 1, 1}, grid = {4, 1, 1};
  static constexpr int even_ctas = 0b0101;

  /// Clears what nobody loads.
  TEGULA_DEVICE static void clear_others(SharedStorage const& smem) {
    SharedAddr const b = shared_address(smem.b.data);
    for (SharedAddr at = shared_address(smem.a.data); at < shared_address(&smem.done); at += 512) {
      if (at < b || at >= b + kBoxBytes || cluster_cta_rank() % 2 == 1)
        st_shared(at + static_cast<SharedAddr>(4 * thread_idx()), std::uint32_t{0});
    }
    fence_proxy_async_shared();
  }
  /// By one thread of CTA 0.
  TEGULA_DEVICE static void load(Params const& p, SharedStorage const& smem, int ctas,
                                 SourceLocation where = SourceLocation::current()) {
    tma_load_multicast<2, L2Hint::none, 2>(shared_address(smem.b.data), p.swizzled_map,
                                           TmaCoordinate{0, 0}, shared_address(&smem.full),
                                           static_cast<std::uint16_t>(ctas), where);
  }
};

}  // namespace tegula::broken
