#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// cluster::arrive_relaxed promises nothing of memory; cluster::arrive does.
///
/// The relaxed form is for CTAs that only want to know that their peers have started.
///
/// PTX ISA: barrier.cluster.arrive: .relaxed, .release.
struct relaxed_arrival : Kernel<32> {
  static constexpr Dim3 cluster = {2, 1, 1}, grid = {2, 1, 1};

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    int const rank = cluster_cta_rank();
    st_shared(at(smem, 0, lane_id()), 1.0f);
    if (p.repaired) {
      cluster::arrive();
    } else {
      cluster::arrive_relaxed();
    }
    cluster::wait();
    float const peers = ld_shared_cluster<float>(mapa(at(smem, 0, lane_id()), 1 - rank));
    st_global(p.out + 32 * rank + lane_id(), peers);
    cluster::sync();
  }
};

// Report:
//   08_clusters/relaxed_arrival.hpp:24: kernel relaxed_arrival, CTA (1, 0, 0), warp 0, lane 30:
//     data_race: ld.shared::cluster reads row 0, column 30 of stage 0 of tile of CTA 0 of the
//     cluster, which warp 0 lane 30 of CTA 0 of the cluster wrote by st.shared
//     (08_clusters/relaxed_arrival.hpp:17), and nothing orders the two: a cluster::sync between
//     them, or an mbarrier_arrive_cluster_release and, after the wait for it, a
//     fence_acq_rel<Scope::gpu>, would order them (64 times in all)

}  // namespace tegula::broken
