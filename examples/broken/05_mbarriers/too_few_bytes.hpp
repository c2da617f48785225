#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// A phase expects all bytes that copies will report to it.
///
/// Two boxes are loaded and the bytes of one expected: the phase ends when the first of them
/// has come.
///
/// PTX ISA: "Tracking asynchronous operations by the mbarrier object": tx-count.
struct too_few_bytes : Kernel<32> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    init(smem);
    SharedAddr const full = shared_address(&smem.full[0]);
    if (lane_id() == 0) {
      mbarrier_arrive_expect_tx(full, p.repaired ? 2 * kBoxBytes : kBoxBytes);
      for (int box = 0; box < 2; ++box)
        tma_load(at(smem, 0, 0, box), p.in_map, TmaCoordinate{32 * box, 0}, full);
    }
    mbarrier_wait_parity(full, 0);
    st_global(p.out + lane_id(), ld_shared<float>(at(smem, 0, lane_id(), 1)));
  }
};

// Report:
//   05_mbarriers/too_few_bytes.hpp:23: kernel too_few_bytes, CTA (0, 0, 0), warp 0, lane 0:
//     async_read_early: ld.shared reads row 0, column 0 of stage 1 of tile while a
//     cp.async.bulk.tensor into it is in flight that warp 0 lane 0 issued
//     (05_mbarriers/too_few_bytes.hpp:20): an expect_tx of all bytes of phase 0 of element 0 of
//     full, in which it was issued and which was complete without it, would order them (32 times in
//     all)
//   05_mbarriers/too_few_bytes.hpp:20: kernel too_few_bytes, CTA (0, 0, 0), warp 0, lane 0:
//     exited_cta: the CTA exits while a cp.async.bulk.tensor into its shared memory, from row 0,
//     column 0 of stage 1 of tile on, has not been waited for: a wait for element 0 of full, on
//     which it completes, would order them

}  // namespace tegula::broken
