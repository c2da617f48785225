#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// A consumer of a multicast tells the CTA that loads.
///
/// mapa names the consumer's own CTA. The leader waits for two arrivals, and one comes.
///
/// PTX ISA: mapa.
struct arrives_at_home : Kernel<64> {
  static constexpr Dim3 cluster = {2, 1, 1}, grid = {2, 1, 1};

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    init(smem, 2);
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
        if (lane_id() == 0) mbarrier_arrive_cluster(mapa(empty, p.repaired ? 0 : rank));
      }
    }
    cluster::sync();
  }
};

// Report:
//   08_clusters/arrives_at_home.hpp:36: kernel arrives_at_home, CTA (0, 0, 0): deadlock: in CTA 0
//     of the cluster, warp 1 waits at mbarrier element 0 of full
//     (08_clusters/arrives_at_home.hpp:29) for the phase of parity 1, which lacks 1024 bytes; lane
//     0 of warp 0 waits at mbarrier element 0 of empty (08_clusters/arrives_at_home.hpp:24) for the
//     phase of parity 0, which lacks 1 of 2 arrivals; lanes 1-31 of warp 0 wait at
//     barrier.cluster.arrive (08_clusters/arrives_at_home.hpp:36) for lane 0; in CTA 1 of the
//     cluster, lane 0 of warp 0 waits at mbarrier element 0 of full
//     (08_clusters/arrives_at_home.hpp:27) for the phase of parity 1, which lacks 1024 bytes; warp
//     1 waits at mbarrier element 0 of full (08_clusters/arrives_at_home.hpp:29) for the phase of
//     parity 1, which lacks 1024 bytes; lanes 1-31 of warp 0 wait at barrier.cluster.arrive
//     (08_clusters/arrives_at_home.hpp:36) for lane 0

}  // namespace tegula::broken
