#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// The parity that one waits for flips each time round the ring.
///
/// In the second round the consumer waits for parity 0 again. Phase 0 is complete, so it goes on at
/// once, and reads what is being loaded.
struct parity_not_flipped : Kernel<32> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    init(smem);
    SharedAddr const full = shared_address(&smem.full[0]), empty = shared_address(&smem.empty[0]);
    for (int round = 0; round < 2; ++round) {
      if (lane_id() == 0) {
        mbarrier_wait_parity(empty, round ^ 1);
        mbarrier_arrive_expect_tx(full, kBoxBytes);
        tma_load(at(smem, 0, 0), p.in_map, TmaCoordinate{32 * round, 0}, full);
      }
      warp::sync();
      mbarrier_wait_parity(full, p.repaired ? round : 0);
      st_global(p.out + 32 * round + lane_id(), ld_shared<float>(at(smem, 0, lane_id())));
      mbarrier_arrive(empty);
    }
    mbarrier_wait_parity(full, 1);
  }
};

// Report:
//   05_mbarriers/parity_not_flipped.hpp:23: kernel parity_not_flipped, CTA (0, 0, 0), warp 0, lane
//     1: async_read_early: ld.shared reads row 0, column 1 of stage 0 of tile while a
//     cp.async.bulk.tensor into it is in flight that warp 0 lane 0 issued
//     (05_mbarriers/parity_not_flipped.hpp:19): a wait for phase 1 of element 0 of full, of parity
//     1, on which it completes, would order them; that of warp 0 lane 1
//     (05_mbarriers/parity_not_flipped.hpp:22) is for phase 0, whose bytes nothing may overwrite
//     but after an arrival that follows this access, and a wait for that (32 times in all)
//   05_mbarriers/parity_not_flipped.hpp:22: kernel parity_not_flipped, CTA (0, 0, 0), warp 0, lane
//     0: mbarrier_misuse: a wait for element 0 of full passes on phase 0, for which warp 0 lane 0
//     has waited before (05_mbarriers/parity_not_flipped.hpp:22), and which it has given back since
//     by mbarrier.arrive on element 0 of empty (05_mbarriers/parity_not_flipped.hpp:24): what it
//     gives back the second time it has not been given: a wait for phase 1, of parity 1, would see
//     what comes next (33 times in all)

}  // namespace tegula::broken
