#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// Bulk groups are a thread's own: another thread that waits waits for nothing.
///
/// Thread 0 stores the tile, and thread 32, which fills it next, does the waiting.
///
/// PTX ISA: cp.async.bulk.wait_group, "the executing thread".
struct wait_by_another_thread : Kernel<64> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    for (int row = warp_id(); row < 8; row += 2) st_shared(at(smem, row, lane_id()), 1.0f);
    fence_proxy_async_shared();
    cta::sync();
    if (thread_idx() == 0) {
      tma_store(p.out_map, TmaCoordinate{0, 0}, at(smem, 0, 0));
      bulk_commit_group();
    }
    if (thread_idx() == (p.repaired ? 0 : 32)) bulk_wait_group_read<0>();
    cta::sync();
    if (warp_id() == 1) st_shared(at(smem, 0, lane_id()), 2.0f);
    if (thread_idx() == 0) bulk_wait_group<0>();
  }
};

// Report:
//   06_tma/wait_by_another_thread.hpp:23: kernel wait_by_another_thread, CTA (0, 0, 0), warp 1,
//     lane 0: async_overwrite: st.shared writes row 0, column 0 of stage 0 of tile while a
//     cp.async.bulk.tensor that reads it may be in flight that warp 0 lane 0 issued
//     (06_tma/wait_by_another_thread.hpp:18): a barrier, or an arrival of warp 0 lane 0 on an
//     mbarrier, after its bulk_wait_group_read would order them (32 times in all)

}  // namespace tegula::broken
