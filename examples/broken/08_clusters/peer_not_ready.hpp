#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// What a CTA wrote, a peer reads after the cluster's barrier; the CTA's own does not reach it.
///
/// cta::sync where cluster::sync is meant.
///
/// PTX ISA: barrier.cluster.
struct peer_not_ready : Kernel<32> {
  static constexpr Dim3 cluster = {2, 1, 1}, grid = {2, 1, 1};

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    int const rank = cluster_cta_rank();
    cluster::sync();  // both CTAs have started
    st_shared(at(smem, 0, lane_id()), 1.0f);
    if (p.repaired) {
      cluster::sync();
    } else {
      cta::sync();
    }
    float const peers = ld_shared_cluster<float>(mapa(at(smem, 0, lane_id()), 1 - rank));
    st_global(p.out + 32 * rank + lane_id(), peers);
    cluster::sync();
  }
};

// Report:
//   08_clusters/peer_not_ready.hpp:24: kernel peer_not_ready, CTA (1, 0, 0), warp 0, lane 31:
//     uninitialized_read: ld.shared::cluster reads row 0, column 31 of stage 0 of tile of CTA 0 of
//     the cluster, which nobody has written (32 times in all)
//   08_clusters/peer_not_ready.hpp:18: kernel peer_not_ready, CTA (0, 0, 0), warp 0, lane 0:
//     data_race: st.shared writes row 0, column 0 of stage 0 of tile, which warp 0 lane 0 of CTA 1
//     of the cluster read by ld.shared::cluster (08_clusters/peer_not_ready.hpp:24), and nothing
//     orders the two: a cluster::sync between them, or an mbarrier_arrive_cluster_release and,
//     after the wait for it, a fence_acq_rel<Scope::gpu>, would order them (64 times in all)

}  // namespace tegula::broken
