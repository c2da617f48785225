#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// What a thread wrote for another CTA, it hands over by an arrival that releases at the scope of
/// the cluster.
///
/// mbarrier_arrive_cluster, which is cheaper, releases at the scope of its own CTA: it says that
/// the thread has finished reading, and nothing of what it wrote.
///
/// PTX ISA: mbarrier.arrive: .release.cta, .release.cluster; "Scope".
struct narrow_release : Kernel<32> {
  static constexpr Dim3 cluster = {2, 1, 1}, grid = {2, 1, 1};

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    init(smem);
    cluster::sync();
    int const rank = cluster_cta_rank();
    SharedAddr const theirs = mapa(shared_address(&smem.empty[0]), 1 - rank);
    st_shared_cluster(mapa(at(smem, 0, lane_id()), 1 - rank), 1.0f);
    if (p.repaired) {
      mbarrier_arrive_cluster_release(theirs);
    } else {
      mbarrier_arrive_cluster(theirs);
    }
    mbarrier_wait_parity(shared_address(&smem.empty[0]), 0);
    fence_acq_rel<Scope::gpu>();
    st_global(p.out + 32 * rank + lane_id(), ld_shared<float>(at(smem, 0, 31 - lane_id())));
    cluster::sync();
  }
};

// Report:
//   08_clusters/narrow_release.hpp:30: kernel narrow_release, CTA (0, 0, 0), warp 0, lane 0:
//     data_race: ld.shared reads row 0, column 31 of stage 0 of tile, which warp 0 lane 31 of CTA 1
//     of the cluster wrote by st.shared::cluster (08_clusters/narrow_release.hpp:22), and nothing
//     orders the two: a cluster::sync between them, or an mbarrier_arrive_cluster_release and,
//     after the wait for it, a fence_acq_rel<Scope::gpu>, would order them (64 times in all)

}  // namespace tegula::broken
