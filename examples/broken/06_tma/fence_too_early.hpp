#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// The fence between the proxies stands between the write and the barrier, or between the barrier
/// and the copy.
///
/// Before the write it orders nothing: fences work backwards from where they stand.
///
/// PTX ISA: "Proxy-preserved base causality order".
struct fence_too_early : Kernel<64> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    fence_proxy_async_shared();
    for (int row = warp_id(); row < 8; row += 2) st_shared(at(smem, row, lane_id()), 1.0f);
    cta::sync();
    if (thread_idx() == 0) {
      if (p.repaired) fence_proxy_async_shared();
      tma_store(p.out_map, TmaCoordinate{0, 0}, at(smem, 0, 0));
      bulk_commit_group();
      bulk_wait_group<0>();
    }
  }
};

// Report:
//   06_tma/fence_too_early.hpp:20: kernel fence_too_early, CTA (0, 0, 0), warp 0, lane 0:
//     proxy_race: cp.async.bulk.tensor reads row 0, column 0 of stage 0 of tile, which warp 0 lane
//     0 wrote by st.shared (06_tma/fence_too_early.hpp:16) after its fence.proxy.async
//     (06_tma/fence_too_early.hpp:15), without one after that: a fence_proxy_async_shared between
//     the two would order them

}  // namespace tegula::broken
