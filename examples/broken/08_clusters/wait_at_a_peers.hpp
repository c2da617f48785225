#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// A thread arrives at mbarriers of its whole cluster, and waits at those of its own CTA.
///
/// To wait for a peer, have it arrive at a barrier of one's own.
///
/// PTX ISA: mbarrier.try_wait: .shared::cta.
struct wait_at_a_peers : Kernel<32> {
  static constexpr Dim3 cluster = {2, 1, 1}, grid = {2, 1, 1};

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    init(smem);
    cluster::sync();
    int const rank = cluster_cta_rank();
    SharedAddr const full = shared_address(&smem.full[0]);
    if (lane_id() == 0) mbarrier_arrive_cluster(mapa(full, p.repaired ? 1 - rank : rank));
    mbarrier_wait_parity(p.repaired ? full : mapa(full, 1 - rank), 0);
    cluster::sync();
  }
};

// Report:
//   08_clusters/wait_at_a_peers.hpp:21: kernel wait_at_a_peers, CTA (1, 0, 0), warp 0, lane 31:
//     invalid_operand: mbarrier.try_wait on an mbarrier of CTA 0 of the cluster: it takes only the
//     CTA's own (shared::cta)

}  // namespace tegula::broken
