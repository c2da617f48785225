#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// A wait for a phase comes before the next phase is complete: the parity tells no more than that.
///
/// All lanes of a warp wait for a box, and lane 0 gives its stage back for all of them. The others
/// may come so late that the next box is there, too: they wait for a third one.
struct late_lane : Kernel<64> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    init(smem, 1);
    SharedAddr const full = shared_address(&smem.full[0]), empty = shared_address(&smem.empty[0]);
    for (int box = 0; box < 2; ++box) {
      if (thread_idx() == 0) {
        mbarrier_wait_parity(empty, box ^ 1);
        mbarrier_arrive_expect_tx(full, kBoxBytes);
        tma_load(at(smem, 0, 0), p.in_map, TmaCoordinate{32 * box, 0}, full);
      } else if (warp_id() == 1) {
        mbarrier_wait_parity(full, box);
        if (p.repaired) warp::sync();
        if (lane_id() != 0) continue;
        st_global(p.out + box, ld_shared<float>(at(smem, 0, 0)));
        mbarrier_arrive(empty);
      }
    }
  }
};

// Report:
//   05_mbarriers/late_lane.hpp:21: kernel late_lane, CTA (0, 0, 0), warp 1, lane 1:
//     mbarrier_misuse: a wait for phase 0 of element 0 of full may come when phase 1 is complete,
//     too: nothing has that one wait for this thread, which then waits for phase 2: a warp::sync
//     after the wait, before what lane 0 does then, would order them

}  // namespace tegula::broken
