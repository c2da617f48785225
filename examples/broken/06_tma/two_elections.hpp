#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// Who waits for a bulk group is who has committed it.
///
/// The store is by a lane elected among the last 28, the wait by one elected among all 32: another.
///
/// PTX ISA: cp.async.bulk.wait_group, "executing thread".
struct two_elections : Kernel<32> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    for (int row = 0; row < 8; ++row) st_shared(at(smem, row, lane_id()), 1.0f);
    fence_proxy_async_shared();
    warp::sync();
    if (lane_id() >= 4 && warp::elect_one(0xfffffff0u)) {
      tma_store(p.out_map, TmaCoordinate{0, 0}, at(smem, 0, 0));
      bulk_commit_group();
      if (p.repaired) bulk_wait_group_read<0>();
    }
    warp::sync();
    if (!p.repaired && warp::elect_one()) bulk_wait_group_read<0>();
    warp::sync();
    st_shared(at(smem, 0, lane_id()), 2.0f);
    bulk_wait_group<0>();
  }
};

// Report:
//   06_tma/two_elections.hpp:25: kernel two_elections, CTA (0, 0, 0), warp 0, lane 31:
//     async_overwrite: st.shared writes row 0, column 31 of stage 0 of tile while a
//     cp.async.bulk.tensor that reads it is in flight that warp 0 lane 4 issued
//     (06_tma/two_elections.hpp:18): a bulk_wait_group_read by the thread that issued it, and then
//     a barrier or an mbarrier's phase for other threads, would order them (32 times in all)

}  // namespace tegula::broken
