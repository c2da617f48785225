#pragma once

#include "../kernel.hpp"

namespace tegula::museum {

/// Who may run ahead of a barrier by a phase or more needs a barrier for each phase ahead.
///
/// For a multiply of two CTAs the leader must know that the follower's half is there: both arrive
/// at one mbarrier of the leader's. The follower, with three buffers, goes ahead without waiting
/// for the leader. Its second arrival completes the phase which the leader's first was to complete;
/// from there on the parities are off by one, and the leader waits for a phase that never comes.
/// The repair: a barrier for each buffer.
///
/// Mend: a barrier for each step that the follower may be ahead.
/// Seen in: TLX, https://github.com/facebookexperimental/triton/pull/3472
/// compute-sanitizer: racecheck, as a deadlock
/// ConSan: yes: deadlock
/// CUTLASS: yes: interleavings
struct runs_ahead_of_the_leader : Kernel<32> {
  static constexpr Dim3 cluster = {2, 1, 1}, grid = {2, 1, 1};
  static constexpr bool at_every_schedule = false;
  static sim::Options options() {
    return {.interleaving = sim::Interleaving::one_warp_behind, .seed = 0, .count = false};
  }

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    SharedAddr const barriers[] = {shared_address(&smem.full[0]), shared_address(&smem.full[1]),
                                   shared_address(&smem.empty[0])};
    if (lane_id() == 0) {
      for (SharedAddr const barrier : barriers) mbarrier_init(barrier, 2);
      fence_mbarrier_init();
    }
    cluster::sync();
    for (int step = 0; step < 3 && lane_id() == 0; ++step) {
      SharedAddr const both = barriers[p.repaired ? step : 0];
      mbarrier_arrive_cluster(mapa(both, 0));
      if (cluster_cta_rank() == 0) mbarrier_wait_parity(both, p.repaired ? 0 : step % 2);
    }
    cluster::sync();
  }
};

// Report:
//   05_clusters/runs_ahead_of_the_leader.hpp:40: kernel runs_ahead_of_the_leader, CTA (0, 0, 0):
//     deadlock: in CTA 0 of the cluster, lane 0 of warp 0 waits at mbarrier element 0 of full
//     (05_clusters/runs_ahead_of_the_leader.hpp:38) for the phase of parity 0, which lacks 2 of 2
//     arrivals; lanes 1-31 of warp 0 wait at barrier.cluster.arrive
//     (05_clusters/runs_ahead_of_the_leader.hpp:40) for lane 0; in CTA 1 of the cluster, warp 0
//     waits at the cluster's barrier (05_clusters/runs_ahead_of_the_leader.hpp:40), where 1 of 2
//     warps have arrived

}  // namespace tegula::museum
