#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// A warp that an mbarrier counts arrives in every phase, also where it has nothing to do.
///
/// Warp 2 has no rows, leaves, and the stage is never empty again.
struct consumer_exits : Kernel<96> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    init(smem, 64);
    SharedAddr const full = shared_address(&smem.full[0]), empty = shared_address(&smem.empty[0]);
    if (!p.repaired && warp_id() == 2) return;
    for (int round = 0; round < 2; ++round) {
      if (thread_idx() == 0) {
        mbarrier_wait_parity(empty, round ^ 1);
        mbarrier_arrive_expect_tx(full, kBoxBytes);
        tma_load(at(smem, 0, 0), p.in_map, TmaCoordinate{32 * round, 0}, full);
      } else if (warp_id() > 0) {
        mbarrier_wait_parity(full, round);
        if (warp_id() == 1) st_global(p.out + lane_id(), ld_shared<float>(at(smem, 0, lane_id())));
        mbarrier_arrive(empty);
      }
    }
  }
};

// Report:
//   05_mbarriers/consumer_exits.hpp:17: kernel consumer_exits, CTA (0, 0, 0): deadlock: warp 1
//     waits at mbarrier element 0 of full (05_mbarriers/consumer_exits.hpp:21) for the phase of
//     parity 1, which lacks 1 of 1 arrival; lane 0 of warp 0 waits at mbarrier element 0 of empty
//     (05_mbarriers/consumer_exits.hpp:17) for the phase of parity 0, which lacks 32 of 64
//     arrivals; warp 2 exited

}  // namespace tegula::broken
