#pragma once

#include "tegula/arch/barrier.hpp"
#include "tegula/arch/cluster.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/mbarrier.hpp"
#include "tegula/arch/shared.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/arch/tcgen05.hpp"
#include "tensor_memory_runs.hpp"

namespace tegula {

/// What a kernel of one product has in shared memory: its operands, an mbarrier, and where its
/// columns of tensor memory begin.
template <class A, class B> struct ProductStorage {
  A a;
  B b;
  Mbarrier done;
  std::uint32_t tmem;
  template <class F> void name_buffers(F&& name) {
    name("A", a);
    name("B", b);
    name("done", done);
    name("tmem", tmem);
  }
};

/// Base of kernels of a warpgroup, or of one in each CTA of a pair, with `Columns` of tensor memory
/// each. Their storage has an mbarrier `done`, at which what a thread has started arrives, and a
/// word `tmem`.
template <int Ctas, int Columns> struct TensorMemoryCtas {
  using Params = Words;
  static constexpr Dim3 cluster = {Ctas, 1, 1};
  static constexpr int threads = 128;

  TEGULA_DEVICE static int rank() {
    if constexpr (Ctas == 1) return 0;
    return cluster_cta_rank();
  }
  /// All threads of the CTA, or of the pair.
  TEGULA_DEVICE static void meet() {
    if constexpr (Ctas == 1) {
      cta::sync();
    } else {
      cluster::sync();
    }
  }
  /// After it everybody has the columns, whose first it returns, and the tensor core sees what the
  /// threads have stored to shared memory, but where `fences` is false.
  template <class Storage>
  TEGULA_DEVICE static TensorAddr begin(Storage& smem, bool fences = true) {
    if (thread_idx() == 0) {
      mbarrier_init(shared_address(&smem.done), 1);
      fence_mbarrier_init();
    }
    if (warp_id() == 0) tcgen05_alloc<Columns, Ctas>(shared_address(&smem.tmem));
    if (fences) fence_proxy_async_shared();
    meet();
    return ld_shared<std::uint32_t>(shared_address(&smem.tmem));
  }
  /// The warp's lanes of these columns.
  TEGULA_DEVICE static TensorAddr own_lanes(TensorAddr base) {
    return base + tensor_address(32 * warp_id(), 0);
  }
  /// Orders what the threads stored to tensor memory before what one of them starts.
  TEGULA_DEVICE static void meet_after_stores() {
    tcgen05_wait_st();
    tcgen05_fence_before_thread_sync();
    meet();
    tcgen05_fence_after_thread_sync();
  }
  /// What the calling thread has started arrives at `done` of each CTA.
  template <class Storage> TEGULA_DEVICE static void commit(Storage& smem) {
    if constexpr (Ctas == 1) {
      tcgen05_commit(shared_address(&smem.done));
    } else {
      tcgen05_commit_multicast<Ctas>(shared_address(&smem.done), (1 << Ctas) - 1);
    }
  }
  template <class Storage> TEGULA_DEVICE static void wait(Storage& smem) {
    mbarrier_wait_parity(shared_address(&smem.done), 0);
    tcgen05_fence_after_thread_sync();
  }
  TEGULA_DEVICE static void end(TensorAddr base) {
    tcgen05_fence_before_thread_sync();
    meet();
    if (warp_id() == 0) tcgen05_dealloc<Columns, Ctas>(base);
  }
};

}  // namespace tegula
