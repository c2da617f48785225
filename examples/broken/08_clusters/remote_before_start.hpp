#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// A CTA touches a peer's shared memory after a cluster::sync: before, the peer may not
/// have started.
///
/// The peer clears its tile, and may do so after the value has come.
///
/// PTX ISA: barrier.cluster; "Memory Consistency Model", "Causality Order".
struct remote_before_start : Kernel<32> {
  static constexpr Dim3 cluster = {2, 1, 1}, grid = {2, 1, 1};

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    int const rank = cluster_cta_rank();
    st_shared(at(smem, rank, lane_id()), 0.0f);
    if (p.repaired) cluster::sync();
    st_shared_cluster(mapa(at(smem, rank, lane_id()), 1 - rank), 1.0f);
    cluster::sync();
    st_global(p.out + 32 * rank + lane_id(), ld_shared<float>(at(smem, 1 - rank, lane_id())));
  }
};

// Report:
//   08_clusters/remote_before_start.hpp:20: kernel remote_before_start, CTA (0, 0, 0), warp 0, lane
//     0: exited_cta: st.shared::cluster to row 0, column 0 of stage 0 of tile of CTA 1 of the
//     cluster, which may not have started: a cluster::sync before it would order the two (64 times
//     in all)

}  // namespace tegula::broken
