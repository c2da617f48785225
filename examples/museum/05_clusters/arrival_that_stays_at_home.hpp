#pragma once

#include "../kernel.hpp"

namespace tegula::museum {

/// What is told to another CTA's threads is released at the scope of the cluster.
///
/// In CUTLASS's mixed kernels one CTA multiplies what two have fetched by `cp.async`. The other one
/// tells it by an arrival at its mbarrier. `ClusterBarrier` arrives with the default scope, the
/// CTA's: it orders what the threads have written for threads of their own CTA. "Occasionally stale
/// reads" was the symptom.
///
/// Mend: an arrival that releases at the cluster's scope.
/// Seen in: CUTLASS, https://github.com/NVIDIA/cutlass/issues/3324
/// compute-sanitizer: no: scopes
/// ConSan: no: scopes
/// CUTLASS: not documented
struct arrival_that_stays_at_home : Kernel<32> {
  static constexpr Dim3 cluster = {2, 1, 1}, grid = {2, 1, 1};

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    init(smem, 32);
    cluster::sync();
    SharedAddr const ready = shared_address(&smem.empty[0]);
    if (cluster_cta_rank() == 1) {  // fetches its half for CTA 0
      st_shared(at(smem, 0, lane_id()), ld_global<float>(p.in + lane_id()));
      if (p.repaired) {
        mbarrier_arrive_cluster_release(mapa(ready, 0));
      } else {
        mbarrier_arrive_cluster(mapa(ready, 0));
      }
    } else {
      mbarrier_wait_parity(ready, 0);
      fence_acq_rel<Scope::gpu>();
      st_global(p.out + lane_id(), ld_shared_cluster<float>(mapa(at(smem, 0, lane_id()), 1)));
    }
    cluster::sync();
  }
};

// Report:
//   05_clusters/arrival_that_stays_at_home.hpp:36: kernel arrival_that_stays_at_home, CTA (0, 0,
//     0), warp 0, lane 0: data_race: ld.shared::cluster reads row 0, column 0 of stage 0 of tile of
//     CTA 1 of the cluster, which warp 0 lane 0 of CTA 1 of the cluster wrote by st.shared
//     (05_clusters/arrival_that_stays_at_home.hpp:27), and nothing orders the two: a cluster::sync
//     between them, or an mbarrier_arrive_cluster_release and, after the wait for it, a
//     fence_acq_rel<Scope::gpu>, would order them (32 times in all)

}  // namespace tegula::museum
