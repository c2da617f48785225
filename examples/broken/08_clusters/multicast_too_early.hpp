#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// A multicast goes into a stage that the consumers of *all* its CTAs have given back.
///
/// The producer in CTA 0 waits for its own consumers only; those of CTA 1 may still be reading.
struct multicast_too_early : Kernel<64> {
  static constexpr Dim3 cluster = {2, 1, 1}, grid = {2, 1, 1};

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    init(smem, p.repaired ? 2 : 1);
    cluster::sync();
    int const rank = cluster_cta_rank();
    SharedAddr const full = shared_address(&smem.full[0]), empty = shared_address(&smem.empty[0]);
    for (int round = 0; round < 2; ++round) {
      if (thread_idx() == 0) {
        mbarrier_arrive_expect_tx(full, kBoxBytes);
        if (rank == 0) {
          mbarrier_wait_parity(empty, round ^ 1);
          tma_load_multicast(at(smem, 0, 0), p.in_map, TmaCoordinate{32 * round, 0}, full, 3);
        }
        mbarrier_wait_parity(full, round);
      } else if (warp_id() == 1) {
        mbarrier_wait_parity(full, round);
        st_global(p.out + 32 * (2 * round + rank) + lane_id(),
                  ld_shared<float>(at(smem, 0, lane_id())));
        warp::sync();
        if (lane_id() == 0 && (rank == 0 || p.repaired)) mbarrier_arrive_cluster(mapa(empty, 0));
      }
    }
    cluster::sync();
  }
};

// Report:
//   08_clusters/multicast_too_early.hpp:23: kernel multicast_too_early, CTA (0, 0, 0), warp 0, lane
//     0: async_overwrite: cp.async.bulk.tensor writes row 0, column 0 of stage 0 of tile of CTA 1
//     of the cluster while a cp.async.bulk.tensor into it is in flight that warp 0 lane 0 of CTA 0
//     of the cluster issued (08_clusters/multicast_too_early.hpp:23): a wait for element 0 of full
//     of CTA 1 of the cluster, on which it completes, by a thread of that CTA, an arrival of its on
//     an mbarrier of CTA 0 after that, and a wait for it there would order them
//   08_clusters/multicast_too_early.hpp:27: kernel multicast_too_early, CTA (1, 0, 0), warp 1, lane
//     0: mbarrier_misuse: a wait for phase 0 of element 0 of full of CTA 1 of the cluster may come
//     when phase 1 is complete, too: nothing has that one wait for this thread, which then waits
//     for phase 2: an arrival after the wait, without which phase 1 is not complete, would order
//     them

}  // namespace tegula::broken
