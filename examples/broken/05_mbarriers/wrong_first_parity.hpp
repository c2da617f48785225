#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// Of an mbarrier just made, phase 0 is to come and the phase before it, of parity 1, is complete.
///
/// A stage is empty at first: the producer's first wait must be for parity 1.
///
/// PTX ISA: mbarrier.try_wait: .parity.
struct wrong_first_parity : Kernel<64> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    init(smem, 32);
    if (thread_idx() == 0) {
      mbarrier_wait_parity(shared_address(&smem.empty[0]), p.repaired ? 1 : 0);
      mbarrier_arrive_expect_tx(shared_address(&smem.full[0]), kBoxBytes);
      tma_load(at(smem, 0, 0), p.in_map, TmaCoordinate{0, 0}, shared_address(&smem.full[0]));
    } else if (warp_id() == 1) {
      mbarrier_wait_parity(shared_address(&smem.full[0]), 0);
      st_global(p.out + lane_id(), ld_shared<float>(at(smem, 0, lane_id())));
      mbarrier_arrive(shared_address(&smem.empty[0]));
    }
  }
};

// Report:
//   05_mbarriers/wrong_first_parity.hpp:16: kernel wrong_first_parity, CTA (0, 0, 0): deadlock:
//     warp 1 waits at mbarrier element 0 of full (05_mbarriers/wrong_first_parity.hpp:20) for the
//     phase of parity 0, which lacks 1 of 1 arrival; lane 0 of warp 0 waits at mbarrier element 0
//     of empty (05_mbarriers/wrong_first_parity.hpp:16) for the phase of parity 0, which lacks 32
//     of 32 arrivals

}  // namespace tegula::broken
