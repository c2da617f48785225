#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// TMA sees an mbarrier that a fence has made visible to the asynchronous proxy.
///
/// cta::sync shows the init to threads; the copy engine is none.
///
/// PTX ISA: fence.mbarrier_init, "Proxies".
struct init_without_fence : Kernel<32> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    SharedAddr const full = shared_address(&smem.full[0]);
    if (lane_id() == 0) mbarrier_init(full, 1);
    if (lane_id() == 0 && p.repaired) fence_mbarrier_init();
    cta::sync();
    if (lane_id() == 0) {
      mbarrier_arrive_expect_tx(full, kBoxBytes);
      tma_load(at(smem, 0, 0), p.in_map, TmaCoordinate{0, 0}, full);
    }
    mbarrier_wait_parity(full, 0);
    st_global(p.out + lane_id(), ld_shared<float>(at(smem, 0, lane_id())));
  }
};

// Report:
//   06_tma/init_without_fence.hpp:20: kernel init_without_fence, CTA (0, 0, 0), warp 0, lane 0:
//     proxy_race: cp.async.bulk.tensor completes on element 0 of full, whose init
//     (06_tma/init_without_fence.hpp:15) no fence.mbarrier_init or fence.proxy.async has made
//     visible to the asynchronous proxy: a fence_mbarrier_init after the init would order them

}  // namespace tegula::broken
