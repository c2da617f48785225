#pragma once

#include "tegula/arch/mbarrier.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/arch/tcgen05.hpp"
#include "tegula/pipeline/pipeline_state.hpp"

namespace tegula {

/// A ring of `Buffers` tiles of accumulators in tensor memory, handed from the thread that
/// multiplies to the warps that read them, and back.
///
///     full[s]:   from the tensor core to `ReaderWarps` warps: the products of tile s are complete
///     empty[s]:  from these warps to the thread that multiplies: nobody reads tile s any more
template <int Buffers, int ReaderWarps> class TensorMemoryPipeline {
 public:
  using State = PipelineState<Buffers>;

  struct Storage {
    Mbarrier full[Buffers];
    Mbarrier empty[Buffers];
  };

  TEGULA_DEVICE explicit TensorMemoryPipeline(Storage const& storage)
      : full_(shared_address(storage.full)), empty_(shared_address(storage.empty)) {}

  /// By one thread; then fence_mbarrier_init and a barrier of the CTA.
  TEGULA_DEVICE void init() const {
    for (int stage = 0; stage < Buffers; ++stage) {
      mbarrier_init(full_ + 8 * stage, 1);
      mbarrier_init(empty_ + 8 * stage, ReaderWarps);
    }
  }

  /// Who multiplies: waits until the tile is free.
  TEGULA_DEVICE void acquire(State const& state,
                             SourceLocation where = SourceLocation::current()) const {
    mbarrier_wait_parity(empty_ + 8 * state.stage, state.parity ^ 1, where);
    tcgen05_fence_after_thread_sync(where);  // after the readers' loads
  }
  /// Who multiplies: the tile is full when all products so far are complete.
  TEGULA_DEVICE void commit(int stage, SourceLocation where = SourceLocation::current()) const {
    tcgen05_commit(full_ + 8 * stage, where);
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
    if (lane_id() == 0) mbarrier_arrive(empty_ + 8 * stage, where);
  }

 private:
  SharedAddr full_;
  SharedAddr empty_;
};

}  // namespace tegula
