#pragma once

#include "../kernel.hpp"

namespace tegula::museum {

/// A CTA's shared memory exists from when that CTA has started: meet once before the first remote
/// access.
///
/// A test of Triton's TLX stored to the other CTA's shared memory first thing. CTAs of a cluster
/// are scheduled together, but nothing says that the other has begun, let alone that it has
/// initialised what it will read. A barrier of the cluster at the entry repaired it.
///
/// Mend: a barrier of the cluster at the entry.
/// Seen in: TLX, https://github.com/facebookexperimental/triton/pull/2292
/// compute-sanitizer: memcheck
/// ConSan: the race, yes
/// CUTLASS: not documented
struct stores_before_the_peer_is_there : Kernel<32> {
  static constexpr Dim3 cluster = {2, 1, 1}, grid = {2, 1, 1};

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    int const rank = cluster_cta_rank();
    st_shared(at(smem, 0, lane_id()), -1.0f);  // where the peer's value will be
    if (p.repaired) cluster::sync();
    st_shared_cluster(mapa(at(smem, 0, lane_id()), 1 - rank), 1.0f);
    cluster::sync();
    st_global(p.out + 32 * rank + lane_id(), ld_shared<float>(at(smem, 0, lane_id())));
  }
};

// Report:
//   05_clusters/stores_before_the_peer_is_there.hpp:26: kernel stores_before_the_peer_is_there, CTA
//     (0, 0, 0), warp 0, lane 0: exited_cta: st.shared::cluster to row 0, column 0 of stage 0 of
//     tile of CTA 1 of the cluster, which may not have started: a cluster::sync before it would
//     order the two (64 times in all)
//   05_clusters/stores_before_the_peer_is_there.hpp:24: kernel stores_before_the_peer_is_there, CTA
//     (1, 0, 0), warp 0, lane 0: data_race: st.shared writes row 0, column 0 of stage 0 of tile,
//     which warp 0 lane 0 of CTA 0 of the cluster wrote by st.shared::cluster
//     (05_clusters/stores_before_the_peer_is_there.hpp:26), and nothing orders the two: a
//     cluster::sync between them, or an mbarrier_arrive_cluster_release and, after the wait for it,
//     a fence_acq_rel<Scope::gpu>, would order them (64 times in all)

}  // namespace tegula::museum
