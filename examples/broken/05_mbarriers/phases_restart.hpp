#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// A thread waits for a phase once: stage and parity go on from tile to tile.
///
/// Each tile begins again with parity 0. In the second the consumer's wait passes on the first
/// one's phase, so that it reads the old box and gives it back a second time; the producer takes
/// that for its sign to load the new one. All is ordered, and the second box is nobody's.
struct phases_restart : Kernel<64> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    init(smem, 32);
    SharedAddr const full = shared_address(&smem.full[0]), empty = shared_address(&smem.empty[0]);
    for (int tile = 0; tile < 2; ++tile) {
      int const parity = p.repaired ? tile : 0;
      if (thread_idx() == 0) {
        mbarrier_wait_parity(empty, parity ^ 1);
        mbarrier_arrive_expect_tx(full, kBoxBytes);
        tma_load(at(smem, 0, 0), p.in_map, TmaCoordinate{32 * tile, 0}, full);
      } else if (warp_id() == 1) {
        mbarrier_wait_parity(full, parity);
        st_global(p.out + 32 * tile + lane_id(), ld_shared<float>(at(smem, 0, lane_id())));
        mbarrier_arrive(empty);
      }
    }
  }
};

// Report:
//   05_mbarriers/phases_restart.hpp:20: kernel phases_restart, CTA (0, 0, 0), warp 0, lane 0:
//     mbarrier_misuse: mbarrier.arrive.expect_tx on element 0 of full, which has had the one
//     arrival of a phase that its init (broken/kernel.hpp:77) says (it waits for 2048 bytes): its
//     count is too small, or this arrival is one too many
//   05_mbarriers/phases_restart.hpp:21: kernel phases_restart, CTA (0, 0, 0), warp 0, lane 0:
//     async_overwrite: cp.async.bulk.tensor writes row 0, column 0 of stage 0 of tile while a
//     cp.async.bulk.tensor into it is in flight that warp 0 lane 0 issued
//     (05_mbarriers/phases_restart.hpp:21): a wait for element 0 of full, on which it completes,
//     would order them

}  // namespace tegula::broken
