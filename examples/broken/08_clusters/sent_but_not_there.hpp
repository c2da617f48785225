#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// What a peer sent by st.async is there once its mbarrier's phase is complete, and not after
/// a barrier.
///
/// cluster::sync orders what threads did. The store is under way by itself.
///
/// PTX ISA: st.async: mbarrier::complete_tx.
struct sent_but_not_there : Kernel<32> {
  static constexpr Dim3 cluster = {2, 1, 1}, grid = {2, 1, 1};

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    init(smem);
    SharedAddr const full = shared_address(&smem.full[0]);
    if (lane_id() == 0) mbarrier_arrive_expect_tx(full, 32 * 4);
    cluster::sync();
    int const rank = cluster_cta_rank();
    st_async(mapa(at(smem, 0, lane_id()), 1 - rank), 1.0f, mapa(full, 1 - rank));
    if (p.repaired) mbarrier_wait_parity(full, 0);
    cluster::sync();
    st_global(p.out + 32 * rank + lane_id(), ld_shared<float>(at(smem, 0, 31 - lane_id())));
    if (!p.repaired) mbarrier_wait_parity(full, 0);
  }
};

// Report:
//   08_clusters/sent_but_not_there.hpp:25: kernel sent_but_not_there, CTA (0, 0, 0), warp 0, lane
//     30: async_read_early: ld.shared reads row 0, column 1 of stage 0 of tile while a st.async
//     into it is in flight that warp 0 lane 1 of CTA 1 of the cluster issued
//     (08_clusters/sent_but_not_there.hpp:22): a wait for element 0 of full, on which it completes,
//     would order them (64 times in all)

}  // namespace tegula::broken
