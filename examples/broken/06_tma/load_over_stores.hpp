#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// TMA writes over what threads wrote after a fence between the proxies, too.
///
/// The tile is cleared by threads and then loaded. Without a fence the zeros may come last.
///
/// PTX ISA: "Proxies".
struct load_over_stores : Kernel<32> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    for (int row = 0; row < 8; ++row) st_shared(at(smem, row, lane_id()), 0.0f);
    init(smem);
    if (p.repaired) fence_proxy_async_shared();
    warp::sync();
    SharedAddr const full = shared_address(&smem.full[0]);
    if (lane_id() == 0) {
      mbarrier_arrive_expect_tx(full, kBoxBytes);
      tma_load(at(smem, 0, 0), p.in_map, TmaCoordinate{0, 0}, full);
    }
    mbarrier_wait_parity(full, 0);
    st_global(p.out + lane_id(), ld_shared<float>(at(smem, 0, lane_id())));
  }
};

// Report:
//   06_tma/load_over_stores.hpp:21: kernel load_over_stores, CTA (0, 0, 0), warp 0, lane 0:
//     proxy_race: cp.async.bulk.tensor writes row 0, column 0 of stage 0 of tile, which warp 0 lane
//     0 wrote by st.shared (06_tma/load_over_stores.hpp:14) without a fence.proxy.async after that:
//     a fence_proxy_async_shared between the two would order them

}  // namespace tegula::broken
