#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// A fence between the proxies is for the writes before it, of its own thread.
///
/// The lanes fence, and half of them store once more.
///
/// PTX ISA: "Proxy-preserved base causality order".
struct stored_after_the_fence : Kernel<64> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    for (int row = warp_id(); row < 8; row += 2) st_shared(at(smem, row, lane_id()), 1.0f);
    fence_proxy_async_shared();
    if (lane_id() >= 16) st_shared(at(smem, warp_id(), lane_id()), 2.0f);
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
//   06_tma/stored_after_the_fence.hpp:20: kernel stored_after_the_fence, CTA (0, 0, 0), warp 0,
//     lane 0: proxy_race: cp.async.bulk.tensor reads row 0, column 16 of stage 0 of tile, which
//     warp 0 lane 16 wrote by st.shared (06_tma/stored_after_the_fence.hpp:16) after its
//     fence.proxy.async (06_tma/stored_after_the_fence.hpp:15), without one after that: a
//     fence_proxy_async_shared by every thread that writes it, after that, or by warp 0 lane 0
//     before the cp.async.bulk.tensor, would order them

}  // namespace tegula::broken
