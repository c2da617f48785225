#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// What TMA loads is there for a thread that has waited for its mbarrier's phase.
///
/// One thread waits for all of them, and a barrier would hand that on; there is none.
///
/// PTX ISA: cp.async.bulk.tensor: mbarrier::complete_tx.
struct read_before_full : Kernel<64> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    init(smem);
    SharedAddr const full = shared_address(&smem.full[0]);
    if (thread_idx() == 0) {
      mbarrier_arrive_expect_tx(full, kBoxBytes);
      tma_load(at(smem, 0, 0), p.in_map, TmaCoordinate{0, 0}, full);
    }
    if (thread_idx() == 0 || p.repaired) mbarrier_wait_parity(full, 0);
    st_global(p.out + thread_idx(), ld_shared<float>(at(smem, warp_id(), lane_id())));
  }
};

// Report:
//   06_tma/read_before_full.hpp:21: kernel read_before_full, CTA (0, 0, 0), warp 1, lane 31:
//     uninitialized_read: ld.shared reads row 1, column 31 of stage 0 of tile, which nobody has
//     written (32 times in all)
//   06_tma/read_before_full.hpp:18: kernel read_before_full, CTA (0, 0, 0), warp 0, lane 0:
//     async_overwrite: cp.async.bulk.tensor writes row 1, column 0 of stage 0 of tile, which warp 1
//     lane 0 reads by ld.shared (06_tma/read_before_full.hpp:21), and nothing orders that before: a
//     wait for element 0 of full, on which it completes, by warp 1 lane 0 before the read would
//     order them
//   06_tma/read_before_full.hpp:21: kernel read_before_full, CTA (0, 0, 0), warp 0, lane 1:
//     async_read_early: ld.shared reads row 0, column 1 of stage 0 of tile while a
//     cp.async.bulk.tensor into it is in flight that warp 0 lane 0 issued
//     (06_tma/read_before_full.hpp:18): a wait for element 0 of full, on which it completes, would
//     order them (31 times in all)

}  // namespace tegula::broken
