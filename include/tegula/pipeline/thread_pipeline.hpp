#pragma once

#include "tegula/arch/fence.hpp"
#include "tegula/arch/mbarrier.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/arch/warp.hpp"
#include "tegula/pipeline/pipeline_state.hpp"

namespace tegula {

/// Who reads what the producers of a ThreadPipeline write.
enum class StageReader : std::uint8_t {
  threads,      ///< loads and ldmatrix
  async_proxy,  ///< wgmma from shared memory, TMA stores
};

/// A ring of `Stages` buffers handed from producer warps, whose threads write them, to consumer
/// warps, and back.
///
///     full[s]:   from each producer warp that has written its part of stage s, to the consumers
///     empty[s]:  from each consumer warp that has read stage s, to the producers
///
/// Phases: as TmaPipeline's. Threads that write by st_shared commit a stage when they have written
/// it. Copies by cp.async are committed by the thread that issued them, once it has waited for
/// them; so that they stay in flight, `Lag` < Stages steps later:
///
///     ring.acquire(write);
///     cp_async_cg(...);  // into write.stage
///     cp_async_commit_group();
///     write.next();
///     if (step >= Lag) {
///       cp_async_wait_group<Lag>();
///       ring.commit(ready.stage);
///       ready.next();
///     }
///
/// and after the last step, cp_async_wait_all() and the commits of the Lag stages that are left.
template <int Stages, int ProducerWarps, int ConsumerWarps,
          StageReader Reader = StageReader::threads>
class ThreadPipeline {
 public:
  using State = PipelineState<Stages>;

  struct Storage {
    Mbarrier full[Stages];
    Mbarrier empty[Stages];
  };

  TEGULA_DEVICE explicit ThreadPipeline(Storage const& storage)
      : full_(shared_address(storage.full)), empty_(shared_address(storage.empty)) {}

  /// By one thread; then fence_mbarrier_init and a barrier of the CTA.
  TEGULA_DEVICE void init() const {
    for (int stage = 0; stage < Stages; ++stage) {
      mbarrier_init(full_ + 8 * stage, ProducerWarps);
      mbarrier_init(empty_ + 8 * stage, ConsumerWarps);
    }
  }

  /// Producer: waits until the stage is free.
  TEGULA_DEVICE void acquire(State const& state,
                             SourceLocation where = SourceLocation::current()) const {
    mbarrier_wait_parity(empty_ + 8 * state.stage, state.parity ^ 1, where);
  }

  /// Producer, all lanes of a warp: this warp has written its part of the stage.
  TEGULA_DEVICE void commit(int stage, SourceLocation where = SourceLocation::current()) const {
    if constexpr (Reader == StageReader::async_proxy) fence_proxy_async_shared(where);
    // every lane's writes, before the arrival of lane 0 for all
    warp::sync(warp::kAllLanes, where);
    if (lane_id() == 0) mbarrier_arrive(full_ + 8 * stage, where);
  }

  /// Consumer: waits until the stage is filled.
  TEGULA_DEVICE void wait(State const& state,
                          SourceLocation where = SourceLocation::current()) const {
    mbarrier_wait_parity(full_ + 8 * state.stage, state.parity, where);
  }

  /// Consumer, all lanes of a warp: this warp has read the stage.
  TEGULA_DEVICE void release(int stage, SourceLocation where = SourceLocation::current()) const {
    warp::sync(warp::kAllLanes, where);  // every lane's reads, before the arrival of lane 0 for all
    if (lane_id() == 0) mbarrier_arrive(empty_ + 8 * stage, where);
  }

 private:
  SharedAddr full_;
  SharedAddr empty_;
};

}  // namespace tegula
