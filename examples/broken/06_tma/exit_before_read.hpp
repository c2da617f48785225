#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// A CTA exits after its stores have read its shared memory.
///
/// The CTA's shared memory goes to the next one, and the store takes what that writes.
///
/// PTX ISA: cp.async.bulk.wait_group.
struct exit_before_read : Kernel<32> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    for (int row = 0; row < 8; ++row) st_shared(at(smem, row, lane_id()), 1.0f);
    fence_proxy_async_shared();
    warp::sync();
    if (lane_id() == 0) {
      tma_store(p.out_map, TmaCoordinate{0, 0}, at(smem, 0, 0));
      bulk_commit_group();
      if (p.repaired) bulk_wait_group_read<0>();
    }
  }
};

// Report:
//   06_tma/exit_before_read.hpp:18: kernel exit_before_read, CTA (0, 0, 0), warp 0, lane 0:
//     exited_cta: the CTA exits while a cp.async.bulk.tensor out of its shared memory, from row 0,
//     column 0 of stage 0 of tile on, has not been waited for: a bulk_wait_group_read by the thread
//     that issued it, and then a barrier or an mbarrier's phase for other threads, would order them

}  // namespace tegula::broken
