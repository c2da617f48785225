#pragma once

#include "tegula/arch/cluster.hpp"
#include "tegula/arch/cluster_launch_control.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/mbarrier.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/arch/warp.hpp"
#include "tegula/pipeline/pipeline_state.hpp"
#include "tegula/pipeline/tile_partition.hpp"
#include "tegula/pipeline/work_tiles.hpp"

/// Which tiles of D a CTA computes when they are dealt while the grid runs: cluster launch control.
/// The grid has a cluster for each tile. One that runs takes over the tile of one that has not
/// started, until there is none.
namespace tegula {

/// A ring of answers to the requests of a cluster of `Ctas` CTAs, each handed to all their roles.
///
///     full[s]:   from the launch control to the roles of this CTA: answer s is there
///     empty[s]:  of the CTA of rank 0, from the roles of all CTAs: nobody reads answer s any more
///
/// A thread of each CTA asks; that of rank 0 for all. In a CTA `Readers` read an answer, who asks
/// among them, and `MoreReaders` in some CTAs besides: threads, or warps that release it together.
template <int Stages, int Ctas, int Readers, int MoreReaders = 0> class LaunchPipeline {
 public:
  using State = PipelineState<Stages>;

  struct Storage {
    ClusterLaunchResponse answer[Stages];
    Mbarrier full[Stages];
    Mbarrier empty[Stages];
  };

  TEGULA_DEVICE explicit LaunchPipeline(Storage const& storage)
      : answer_(shared_address(storage.answer)),
        full_(shared_address(storage.full)),
        empty_(shared_address(storage.empty)) {}

  /// By one thread; then fence_mbarrier_init and a barrier of the CTA, or with peers of the
  /// cluster.
  TEGULA_DEVICE void init() const {
    for (int stage = 0; stage < Stages; ++stage) {
      mbarrier_init(full_ + 8 * stage, 1);
      mbarrier_init(empty_ + 8 * stage, Ctas * Readers + MoreReaders);
    }
  }

  /// Who asks: has the next answer written, when nobody reads the one before it in its place.
  TEGULA_DEVICE void ask(State const& state,
                         SourceLocation where = SourceLocation::current()) const {
    SharedAddr const answer = answer_ + 16 * state.stage, full = full_ + 8 * state.stage;
    // This CTA's answer of the round before has been here: who asks has read it.
    mbarrier_arrive_expect_tx(full, sizeof(ClusterLaunchResponse), where);
    if (Ctas > 1 && cluster_cta_rank() != 0) return;
    mbarrier_wait_parity<MemoryOrder::acquire, Ctas == 1 ? Scope::cta : Scope::cluster>(
        empty_ + 8 * state.stage, state.parity ^ 1, where);
    if constexpr (Ctas == 1) {
      clusterlaunchcontrol_try_cancel(answer, full, where);
    } else {
      clusterlaunchcontrol_try_cancel_multicast(answer, full, where);
    }
  }

  /// A reader: waits for an answer, reads it, and gives it back. `by_warp`: all lanes of a warp
  /// together.
  TEGULA_DEVICE CancelledCluster read(State const& state, bool by_warp,
                                      SourceLocation where = SourceLocation::current()) const {
    mbarrier_wait_parity(full_ + 8 * state.stage, state.parity, where);
    CancelledCluster const answer =
        clusterlaunchcontrol_query_cancel(answer_ + 16 * state.stage, where);
    fence_proxy_async_shared(where);  // read, before the async proxy writes there again
    SharedAddr const empty = empty_ + 8 * state.stage;
    if (by_warp) warp::sync(warp::kAllLanes, where);
    if (by_warp && lane_id() != 0) return answer;
    if constexpr (Ctas == 1) {
      mbarrier_arrive(empty, where);
    } else {
      mbarrier_arrive_cluster_release(mapa(empty, 0), where);
    }
    return answer;
  }

 private:
  SharedAddr answer_;
  SharedAddr full_;
  SharedAddr empty_;
};

/// The tiles of one role of a CTA, in the order of the answers: what WorkTileIterator is of a
/// static grid. The first is that of the cluster's own number.
template <WorkTileSpec S, class Launches> class LaunchedTiles {
 public:
  int m, n, batch;  ///< the first element of the present tile, and its batch

  /// `by_warp`: the role's warps walk it, each as a whole; else one thread does.
  TEGULA_DEVICE LaunchedTiles(TilePartition const& tiling, Launches const& launches, bool by_warp)
      : tiling_(tiling),
        launches_(launches),
        index_(static_cast<int>(block_idx().x) / S.ctas),
        by_warp_(by_warp) {
    find();
  }

  TEGULA_DEVICE bool done() const { return index_ < 0; }
  /// Goes on by one tile. Where it lies is known after find().
  TEGULA_DEVICE void next(SourceLocation where = SourceLocation::current()) {
    CancelledCluster const answer = launches_.read(state_, by_warp_, where);
    state_.next();
    index_ = answer.cancelled ? answer.first_cta.x / S.ctas : -1;
  }
  TEGULA_DEVICE void find() {
    if (done()) return;
    WorkTilePlace const place = place_of<S>(tiling_.tile(index_, S.n * S.cluster_n, 0), false);
    m = place.m;
    n = place.n;
    batch = place.batch;
  }
  /// By the thread that asks: for one tile after another, until there is none.
  TEGULA_DEVICE void ask_for_all(SourceLocation where = SourceLocation::current()) {
    while (!done()) {
      launches_.ask(state_, where);
      next(where);
    }
  }

 private:
  TilePartition const& tiling_;
  Launches const& launches_;
  typename Launches::State state_;
  int index_;
  bool by_warp_;
};

}  // namespace tegula
