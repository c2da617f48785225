#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// bulk_wait_group_read counts groups, not stores.
///
/// A group is committed for every two stores. One group may still read: that of the stage which is
/// filled next.
///
/// PTX ISA: cp.async.bulk.wait_group.
struct groups_of_two_stores : Kernel<32> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    for (int i = 0; i < 4; ++i) {
      int const stage = i % 2;
      if (lane_id() == 0) bulk_wait_group_read<1>();
      warp::sync();
      for (int row = 0; row < 8; ++row) st_shared(at(smem, row, lane_id(), stage), 1.0f);
      fence_proxy_async_shared();
      warp::sync();
      if (lane_id() == 0) {
        tma_store(p.out_map, TmaCoordinate{32 * stage, 8 * (i / 2)}, at(smem, 0, 0, stage));
        if (stage == 1 || p.repaired) bulk_commit_group();
      }
    }
    bulk_wait_group<0>();
  }
};

// Report:
//   06_tma/groups_of_two_stores.hpp:19: kernel groups_of_two_stores, CTA (0, 0, 0), warp 0, lane
//     31: async_overwrite: st.shared writes row 0, column 31 of stage 0 of tile while a
//     cp.async.bulk.tensor that reads it is in flight that warp 0 lane 0 issued
//     (06_tma/groups_of_two_stores.hpp:23): that thread's wait for its groups
//     (06_tma/groups_of_two_stores.hpp:17) leaves the latest 1 in flight, and this is of it: a
//     bulk_commit_group after each stage's store, or a bulk_wait_group_read that leaves fewer, and
//     then a barrier or an mbarrier's phase for other threads, would order them (512 times in all)

}  // namespace tegula::broken
