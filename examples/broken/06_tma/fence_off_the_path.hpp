#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// A fence between the proxies counts where it lies on the way from the write to the copy.
///
/// After the barrier warp 1 fences, and warp 0 stores: nothing leads from that fence to the store.
///
/// PTX ISA: "Proxy-preserved base causality order".
struct fence_off_the_path : Kernel<64> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    for (int row = warp_id(); row < 8; row += 2) st_shared(at(smem, row, lane_id()), 1.0f);
    cta::sync();
    if (warp_id() == (p.repaired ? 0 : 1)) fence_proxy_async_shared();
    if (thread_idx() == 0) {
      tma_store(p.out_map, TmaCoordinate{0, 0}, at(smem, 0, 0));
      bulk_commit_group();
      bulk_wait_group<0>();
    }
  }
};

// Report:
//   06_tma/fence_off_the_path.hpp:18: kernel fence_off_the_path, CTA (0, 0, 0), warp 0, lane 0:
//     proxy_race: cp.async.bulk.tensor reads row 0, column 0 of stage 0 of tile, which warp 0 lane
//     0 wrote by st.shared (06_tma/fence_off_the_path.hpp:14) without a fence.proxy.async after
//     that: a fence_proxy_async_shared between the two would order them

}  // namespace tegula::broken
