#pragma once

#include "tegula/arch/barrier.hpp"
#include "tegula/arch/fence.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/arch/tma.hpp"
#include "tegula/arch/warp.hpp"
#include "tegula/atom/mma_spec.hpp"
#include "tegula/pipeline/pipeline_state.hpp"

namespace tegula {

/// A ring of `Buffers` shared-memory buffers handed from the threads of a team, which meet by
/// `team.sync()`, to TMA, which stores them. One thread of the team, the leader, issues the stores.
///
/// For each buffer in turn: acquire(), write it, then store() with a function that issues the
/// team's TMA stores.
template <int Buffers, class Team> class TeamStorePipeline {
 public:
  TeamStorePipeline() = default;
  TEGULA_DEVICE explicit TeamStorePipeline(Team team) : team_(team) {}

  /// The buffer to write, once TMA has read what was in it.
  TEGULA_DEVICE int acquire(SourceLocation where = SourceLocation::current()) {
    if (team_.leads(where)) bulk_wait_group_read<Buffers - 1>(where);
    team_.sync(where);  // the leader has seen the buffer read: all may write it
    return buffer_;
  }

  /// Hands the buffer over: what every thread wrote is visible to the stores that the leader
  /// issues.
  template <class Issue>
  TEGULA_DEVICE void store(Issue issue, SourceLocation where = SourceLocation::current()) {
    fence_proxy_async_shared(where);  // this thread's writes, before reads by the async proxy ...
    team_.sync(where);                // ... that the leader starts, for all threads
    if (team_.leads(where)) {
      issue();
      bulk_commit_group(where);
    }
    buffer_ = next_stage<Buffers>(buffer_, where);
  }

  /// Before the CTA ends: its shared memory lives until TMA has read it.
  TEGULA_DEVICE void drain(SourceLocation where = SourceLocation::current()) const {
    if (team_.leads(where)) bulk_wait_group_read<0>(where);
  }

 private:
  Team team_;
  int buffer_ = 0;
};

/// The lanes of a warp.
struct WarpTeam {
  TEGULA_DEVICE void sync(SourceLocation where) const { warp::sync(warp::kAllLanes, where); }
  TEGULA_DEVICE bool leads(SourceLocation where) const { return warp::elect_one(where); }
};

/// The threads of a warpgroup, which meet at a barrier of the CTA of their own.
struct WarpgroupTeam {
  int barrier;  ///< 1 to 15

  TEGULA_DEVICE void sync(SourceLocation where) const {
    cta::bar_sync(barrier, kWarpgroupSize, where);
  }
  TEGULA_DEVICE bool leads(SourceLocation where) const {
    return warp_id() % 4 == 0 && warp::elect_one(where);
  }
};

template <int Buffers> using StorePipeline = TeamStorePipeline<Buffers, WarpTeam>;
template <int Buffers> using WarpgroupStorePipeline = TeamStorePipeline<Buffers, WarpgroupTeam>;

}  // namespace tegula
