#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// A CTA stays until the last arrival of a peer at one of its mbarriers has come.
///
/// In the last round the consumer tells the producer in CTA 0 that the stage is free. Nobody waits
/// for that any more, so CTA 0 may be gone.
struct arrival_at_the_gone : Kernel<32> {
  static constexpr Dim3 cluster = {2, 1, 1}, grid = {2, 1, 1};

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    init(smem, 1);
    cluster::sync();
    SharedAddr const empty = shared_address(&smem.empty[0]);
    if (cluster_cta_rank() == 1 && lane_id() == 0) mbarrier_arrive_cluster(mapa(empty, 0));
    if (p.repaired && cluster_cta_rank() == 0) mbarrier_wait_parity(empty, 0);
  }
};

// Report:
//   08_clusters/arrival_at_the_gone.hpp:18: kernel arrival_at_the_gone, CTA (1, 0, 0), warp 0, lane
//     0: exited_cta: the CTA of rank 0 exits, and nothing orders that after the mbarrier.arrive on
//     element 0 of empty by CTA 1 of the cluster: a wait of that CTA for the mbarrier's phase
//     before it exits would order them

}  // namespace tegula::broken
