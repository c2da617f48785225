#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// A phase expects at most 2^20 - 1 bytes.
///
/// Sixteen stages of 64 KiB by one mbarrier are a byte too many.
///
/// PTX ISA: "Contents of the mbarrier object": tx-count.
struct bytes_overflow : Kernel<32> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    init(smem);
    SharedAddr const full = shared_address(&smem.full[0]);
    int const stages = p.repaired ? 15 : 16;
    if (lane_id() == 0) {
      for (int stage = 0; stage < stages; ++stage) mbarrier_expect_tx(full, 65536);
      for (int stage = 0; stage < stages; ++stage) mbarrier_complete_tx(full, 65536);
      mbarrier_arrive(full);
    }
    mbarrier_wait_parity(full, 0);
  }
};

// Report:
//   05_mbarriers/bytes_overflow.hpp:18: kernel bytes_overflow, CTA (0, 0, 0), warp 0, lane 0:
//     mbarrier_misuse: mbarrier.expect_tx brings element 0 of full to 1048576 pending bytes: the
//     count must stay between -1048575 and 1048575

}  // namespace tegula::broken
