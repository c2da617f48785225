#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// mbarrier.try_wait may return before the phase is complete, and says so.
///
/// It suspends the thread for a time that the hardware chooses. Mostly that is long enough.
///
/// PTX ISA: mbarrier.try_wait, "potentially blocking", suspendTimeHint.
struct answer_ignored : Kernel<32> {
  static constexpr bool at_every_schedule = false;

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    init(smem);
    SharedAddr const full = shared_address(&smem.full[0]);
    if (lane_id() == 0) {
      mbarrier_arrive_expect_tx(full, kBoxBytes);
      tma_load(at(smem, 0, 0), p.in_map, TmaCoordinate{0, 0}, full);
    }
    while (!mbarrier_try_wait_parity(full, 0) && p.repaired) {
    }
    st_global(p.out + lane_id(), ld_shared<float>(at(smem, 0, lane_id())));
    mbarrier_wait_parity(full, 0);
  }
};

// Report:
//   05_mbarriers/answer_ignored.hpp:24: kernel answer_ignored, CTA (0, 0, 0), warp 0, lane 31:
//     async_read_early: ld.shared reads row 0, column 31 of stage 0 of tile while a
//     cp.async.bulk.tensor into it is in flight that warp 0 lane 0 issued
//     (05_mbarriers/answer_ignored.hpp:20): a wait for element 0 of full, on which it completes,
//     would order them (32 times in all)

}  // namespace tegula::broken
