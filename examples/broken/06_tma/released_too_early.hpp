#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// A consumer gives a stage back after it has read it.
///
/// The arrival stands before the load, so it says nothing of it: the next box may come first.
///
/// PTX ISA: mbarrier.arrive: .release.
struct released_too_early : Kernel<64> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    init(smem, 32);
    SharedAddr const full = shared_address(&smem.full[0]), empty = shared_address(&smem.empty[0]);
    for (int round = 0; round < 2; ++round) {
      if (thread_idx() == 0) {
        mbarrier_wait_parity(empty, round ^ 1);
        mbarrier_arrive_expect_tx(full, kBoxBytes);
        tma_load(at(smem, 0, 0), p.in_map, TmaCoordinate{32 * round, 0}, full);
      } else if (warp_id() == 1) {
        mbarrier_wait_parity(full, round);
        if (!p.repaired) mbarrier_arrive(empty);
        st_global(p.out + 32 * round + lane_id(), ld_shared<float>(at(smem, 0, lane_id())));
        if (p.repaired) mbarrier_arrive(empty);
      }
    }
  }
};

// Report:
//   06_tma/released_too_early.hpp:20: kernel released_too_early, CTA (0, 0, 0), warp 0, lane 0:
//     async_overwrite: cp.async.bulk.tensor writes row 0, column 3 of stage 0 of tile, which warp 1
//     lane 3 reads by ld.shared (06_tma/released_too_early.hpp:24), and nothing orders that before:
//     an arrival on an mbarrier after the read, or a barrier, and a wait for it would order them

}  // namespace tegula::broken
