#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// Every CTA of the cluster comes to the cluster's barrier.
///
/// CTA 1 waits for a value from CTA 0, which waits for CTA 1.
///
/// PTX ISA: barrier.cluster.
struct one_cta_missing : Kernel<32> {
  static constexpr Dim3 cluster = {2, 1, 1}, grid = {2, 1, 1};

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    init(smem);
    cluster::sync();
    SharedAddr const full = shared_address(&smem.full[0]);
    bool const tells = cluster_cta_rank() == 0 && lane_id() == 0;
    if (p.repaired && tells) mbarrier_arrive_cluster(mapa(full, 1));
    if (cluster_cta_rank() == 1) mbarrier_wait_parity(full, 0);
    cluster::sync();
    if (!p.repaired && tells) mbarrier_arrive_cluster(mapa(full, 1));
  }
};

// Report:
//   08_clusters/one_cta_missing.hpp:22: kernel one_cta_missing, CTA (0, 0, 0): deadlock: in CTA 0
//     of the cluster, warp 0 waits at the cluster's barrier (08_clusters/one_cta_missing.hpp:22),
//     where 1 of 2 warps have arrived; in CTA 1 of the cluster, warp 0 waits at mbarrier element 0
//     of full (08_clusters/one_cta_missing.hpp:21) for the phase of parity 0, which lacks 1 of 1
//     arrival

}  // namespace tegula::broken
