#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// A CTA stays until its peers are done with its shared memory.
///
/// CTA 1 reads from CTA 0, which has nothing left to do and may have exited.
///
/// PTX ISA: ld.shared::cluster; "Cluster of Cooperative Thread Arrays".
struct peer_gone : Kernel<32> {
  static constexpr Dim3 cluster = {2, 1, 1}, grid = {2, 1, 1};

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    st_shared(at(smem, 0, lane_id()), 1.0f);
    cluster::sync();
    if (cluster_cta_rank() == 1) {
      st_global(p.out + lane_id(), ld_shared_cluster<float>(mapa(at(smem, 0, lane_id()), 0)));
    }
    if (p.repaired) cluster::sync();
  }
};

// Report:
//   08_clusters/peer_gone.hpp:19: kernel peer_gone, CTA (1, 0, 0), warp 0, lane 31: exited_cta: the
//     CTA of rank 0 exits, and nothing orders that after the ld.shared::cluster from row 0, column
//     31 of stage 0 of tile by CTA 1 of the cluster: a wait of that CTA for the cluster's barrier
//     before it exits would order them

}  // namespace tegula::broken
