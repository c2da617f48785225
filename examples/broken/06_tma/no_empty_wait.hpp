#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// A stage is loaded again after its consumers have said that they have read it.
///
/// The producer goes round the ring without waiting for the empty mbarrier.
struct no_empty_wait : Kernel<64> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    init(smem, 32);
    SharedAddr const full = shared_address(&smem.full[0]), empty = shared_address(&smem.empty[0]);
    for (int round = 0; round < 2; ++round) {
      if (thread_idx() == 0) {
        if (p.repaired) mbarrier_wait_parity(empty, round ^ 1);
        mbarrier_arrive_expect_tx(full, kBoxBytes);
        tma_load(at(smem, 0, 0), p.in_map, TmaCoordinate{32 * round, 0}, full);
        mbarrier_wait_parity(full, round);
      } else if (warp_id() == 1) {
        mbarrier_wait_parity(full, round);
        st_global(p.out + 32 * round + lane_id(), ld_shared<float>(at(smem, 0, lane_id())));
        mbarrier_arrive(empty);
      }
    }
  }
};

// Report:
//   06_tma/no_empty_wait.hpp:18: kernel no_empty_wait, CTA (0, 0, 0), warp 0, lane 0: unread_copy:
//     cp.async.bulk.tensor writes over what a cp.async.bulk.tensor of warp 0 lane 0
//     (06_tma/no_empty_wait.hpp:18) has brought, from row 0, column 0 of stage 0 of tile on, and
//     nobody has read any of it
//   06_tma/no_empty_wait.hpp:22: kernel no_empty_wait, CTA (0, 0, 0), warp 1, lane 0:
//     async_read_early: ld.shared reads row 0, column 0 of stage 0 of tile while a
//     cp.async.bulk.tensor into it is in flight that warp 0 lane 0 issued
//     (06_tma/no_empty_wait.hpp:18): a wait for phase 1 of element 0 of full, of parity 1, on which
//     it completes, would order them; that of warp 1 lane 0 (06_tma/no_empty_wait.hpp:21) is for
//     phase 0, whose bytes nothing may overwrite but after an arrival that follows this access, and
//     a wait for that (32 times in all)
//   06_tma/no_empty_wait.hpp:21: kernel no_empty_wait, CTA (0, 0, 0), warp 1, lane 0:
//     mbarrier_misuse: a wait for phase 0 of element 0 of full may come when phase 1 is complete,
//     too: nothing has that one wait for this thread, which then waits for phase 2: an arrival
//     after the wait, without which phase 1 is not complete, would order them

}  // namespace tegula::broken
