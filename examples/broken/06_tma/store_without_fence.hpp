#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// What threads wrote, TMA reads after a fence.proxy.async and a barrier.
///
/// Threads write through the generic proxy, TMA reads through the asynchronous one. A barrier
/// orders threads, and not the proxies.
///
/// PTX ISA: "Proxies"; "Proxy-preserved base causality order"; fence.proxy.async.
struct store_without_fence : Kernel<64> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    for (int row = warp_id(); row < 8; row += 2) st_shared(at(smem, row, lane_id()), 1.0f);
    if (p.repaired) fence_proxy_async_shared();
    cta::sync();
    if (thread_idx() == 0) {
      tma_store(p.out_map, TmaCoordinate{0, 0}, at(smem, 0, 0));
      bulk_commit_group();
      bulk_wait_group<0>();
    }
  }
};

// Report:
//   06_tma/store_without_fence.hpp:19: kernel store_without_fence, CTA (0, 0, 0), warp 0, lane 0:
//     proxy_race: cp.async.bulk.tensor reads row 0, column 0 of stage 0 of tile, which warp 0 lane
//     0 wrote by st.shared (06_tma/store_without_fence.hpp:15) without a fence.proxy.async after
//     that: a fence_proxy_async_shared between the two would order them

}  // namespace tegula::broken
