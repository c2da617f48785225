#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// A multicast completes bytes of an mbarrier in each CTA that it writes to: each expects its own.
///
/// CTA 1 arrives and expects nothing. Its phase is complete before anything has come.
///
/// PTX ISA: cp.async.bulk.tensor, .multicast::cluster.
struct nothing_expected : Kernel<32> {
  static constexpr Dim3 cluster = {2, 1, 1}, grid = {2, 1, 1};

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    init(smem);
    cluster::sync();
    SharedAddr const full = shared_address(&smem.full[0]);
    int const rank = cluster_cta_rank();
    if (lane_id() == 0) {
      if (rank == 0 || p.repaired)
        mbarrier_arrive_expect_tx(full, kBoxBytes);
      else
        mbarrier_arrive(full);
      if (rank == 0) tma_load_multicast(at(smem, 0, 0), p.in_map, TmaCoordinate{0, 0}, full, 3);
    }
    mbarrier_wait_parity(full, 0);
    st_global(p.out + 32 * rank + lane_id(), ld_shared<float>(at(smem, 0, lane_id())));
    cluster::sync();
  }
};

// Report:
//   08_clusters/nothing_expected.hpp:28: kernel nothing_expected, CTA (1, 0, 0), warp 0, lane 0:
//     uninitialized_read: ld.shared reads row 0, column 0 of stage 0 of tile, which nobody has
//     written (32 times in all)
//   08_clusters/nothing_expected.hpp:25: kernel nothing_expected, CTA (0, 0, 0), warp 0, lane 0:
//     async_overwrite: cp.async.bulk.tensor writes row 0, column 0 of stage 0 of tile of CTA 1 of
//     the cluster, which warp 0 lane 0 of CTA 1 of the cluster reads by ld.shared
//     (08_clusters/nothing_expected.hpp:28), and nothing orders that before: an expect_tx of its
//     bytes in phase 0 of element 0 of full of CTA 1 of the cluster, for which warp 0 lane 0 of CTA
//     1 of the cluster has waited (08_clusters/nothing_expected.hpp:27) and which was complete
//     without any bytes, would order them
//   08_clusters/nothing_expected.hpp:25: kernel nothing_expected, CTA (0, 0, 0), warp 0, lane 0:
//     exited_cta: the CTA exits while a cp.async.bulk.tensor into its shared memory, from row 0,
//     column 0 of stage 0 of tile on, has not been waited for: a wait for element 0 of full, on
//     which it completes, would order them

}  // namespace tegula::broken
