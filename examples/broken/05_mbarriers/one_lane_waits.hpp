#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// A lane that has waited has waited for itself.
///
/// The others read without a wait, for nothing holds them until lane 0 is through.
///
/// PTX ISA: mbarrier.test_wait, .acquire.
struct one_lane_waits : Kernel<64> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    init(smem);
    SharedAddr const full = shared_address(&smem.full[0]);
    if (thread_idx() == 0) {
      mbarrier_arrive_expect_tx(full, kBoxBytes);
      tma_load(at(smem, 0, 0), p.in_map, TmaCoordinate{0, 0}, full);
    }
    if (warp_id() == 1) {
      if (lane_id() == 0) mbarrier_wait_parity(full, 0);
      if (p.repaired) warp::sync();
      st_global(p.out + lane_id(), ld_shared<float>(at(smem, 0, lane_id())));
    }
  }
};

// Report:
//   05_mbarriers/one_lane_waits.hpp:23: kernel one_lane_waits, CTA (0, 0, 0), warp 1, lane 31:
//     uninitialized_read: ld.shared reads row 0, column 31 of stage 0 of tile, which nobody has
//     written (31 times in all)
//   05_mbarriers/one_lane_waits.hpp:18: kernel one_lane_waits, CTA (0, 0, 0), warp 0, lane 0:
//     async_overwrite: cp.async.bulk.tensor writes row 0, column 1 of stage 0 of tile, which warp 1
//     lane 1 reads by ld.shared (05_mbarriers/one_lane_waits.hpp:23), and nothing orders that
//     before: a warp::sync after the wait for element 0 of full, on which it completes, by warp 1
//     lane 0 (05_mbarriers/one_lane_waits.hpp:21) would order them

}  // namespace tegula::broken
