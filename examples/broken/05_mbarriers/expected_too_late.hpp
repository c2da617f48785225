#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// All bytes of a phase are expected before the phase may be over.
///
/// The first box is expected with the arrival, the second one when the first is on its way. If that
/// comes at once, the phase is over, and the second expect_tx counts for the next.
///
/// PTX ISA: "Phase of the mbarrier object": the pending count and tx-count.
struct expected_too_late : Kernel<64> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    init(smem, 32);
    SharedAddr const full = shared_address(&smem.full[0]);
    if (thread_idx() == 0) {
      if (p.repaired) mbarrier_expect_tx(full, kBoxBytes);
      mbarrier_arrive_expect_tx(full, kBoxBytes);
      tma_load(at(smem, 0, 0, 0), p.in_map, TmaCoordinate{0, 0}, full);
      if (!p.repaired) mbarrier_expect_tx(full, kBoxBytes);
      tma_load(at(smem, 0, 0, 1), p.in_map, TmaCoordinate{32, 0}, full);
    } else if (warp_id() == 1) {
      mbarrier_wait_parity(full, 0);
      for (int stage = 0; stage < 2; ++stage)
        st_global(p.out + 32 * stage + lane_id(), ld_shared<float>(at(smem, 0, lane_id(), stage)));
    }
  }
};

// Report:
//   05_mbarriers/expected_too_late.hpp:21: kernel expected_too_late, CTA (0, 0, 0), warp 0, lane 0:
//     mbarrier_misuse: mbarrier.expect_tx of 1024 bytes on element 0 of full when the phase has had
//     its arrivals, and what it expects is in flight: the phase may be over before: the expect_tx
//     before the last arrival of the phase would order them

}  // namespace tegula::broken
