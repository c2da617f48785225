#pragma once

#include <cstdint>

#include "tegula/arch/cluster.hpp"
#include "tegula/arch/mbarrier.hpp"
#include "tegula/arch/scope.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/arch/tcgen05.hpp"
#include "tegula/pipeline/pipeline_state.hpp"

namespace tegula {

/// A ring of `Buffers` tiles of accumulators in tensor memory, handed from the thread that
/// multiplies to the warps that read them, and back.
///
///     full[s]:   from the tensor core to `ReaderWarps` warps: the products of tile s are complete
///     empty[s]:  from these warps to the thread that multiplies: nobody reads tile s any more
///
/// Of `Ctas` 2, a pair of CTAs: the thread is the even CTA's, each CTA has so many warps, which
/// read its half of the tile.
template <int Buffers, int ReaderWarps, int Ctas = 1> class TensorMemoryPipeline {
  static constexpr Scope kScope = Ctas == 1 ? Scope::cta : Scope::cluster;

 public:
  using State = PipelineState<Buffers>;

  struct Storage {
    Mbarrier full[Buffers];
    Mbarrier empty[Buffers];
  };

  /// `first`: of a pair, the rank of its even CTA.
  TEGULA_DEVICE explicit TensorMemoryPipeline(Storage const& storage, int first = 0)
      : full_(shared_address(storage.full)), empty_(shared_address(storage.empty)), first_(first) {}

  /// By one thread; then fence_mbarrier_init and a barrier of the CTA.
  TEGULA_DEVICE void init() const {
    for (int stage = 0; stage < Buffers; ++stage) {
      mbarrier_init(full_ + 8 * stage, 1);
      mbarrier_init(empty_ + 8 * stage, ReaderWarps * Ctas);
    }
  }

  /// Who multiplies: waits until the tile is free.
  TEGULA_DEVICE void acquire(State const& state,
                             SourceLocation where = SourceLocation::current()) const {
    mbarrier_wait_parity<MemoryOrder::acquire, kScope>(empty_ + 8 * state.stage, state.parity ^ 1,
                                                       where);
    tcgen05_fence_after_thread_sync(where);  // after the readers' loads
  }
  /// Who multiplies: the tile is full when all products so far are complete.
  TEGULA_DEVICE void commit(int stage, SourceLocation where = SourceLocation::current()) const {
    if constexpr (Ctas == 1) {
      tcgen05_commit(full_ + 8 * stage, where);
    } else {
      auto const both = static_cast<std::uint16_t>(3 << first_);
      tcgen05_commit_multicast<Ctas>(full_ + 8 * stage, both, where);
    }
  }

  /// Readers: wait until the tile is full.
  TEGULA_DEVICE void wait(State const& state,
                          SourceLocation where = SourceLocation::current()) const {
    mbarrier_wait_parity(full_ + 8 * state.stage, state.parity, where);
    tcgen05_fence_after_thread_sync(where);  // the products, before this thread's loads
  }
  /// Readers, all lanes of a warp, after tcgen05_wait_ld: this warp has read the tile.
  TEGULA_DEVICE void release(int stage, SourceLocation where = SourceLocation::current()) const {
    tcgen05_fence_before_thread_sync(where);  // the loads, before who multiplies next
    if (lane_id() != 0) return;
    if constexpr (Ctas == 1) {
      mbarrier_arrive(empty_ + 8 * stage, where);
    } else {
      mbarrier_arrive_cluster_release(mapa(empty_ + 8 * stage, first_), where);
    }
  }

 private:
  SharedAddr full_;
  SharedAddr empty_;
  int first_;
};

}  // namespace tegula
