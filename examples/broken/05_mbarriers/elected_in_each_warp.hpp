#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// elect.sync elects a lane of each warp that executes it.
///
/// The role is of two warps: two lanes arrive where the mbarrier counts one, and both load.
///
/// PTX ISA: elect.sync.
struct elected_in_each_warp : Kernel<96> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    init(smem);
    SharedAddr const full = shared_address(&smem.full[0]);
    bool const loads = p.repaired ? warp_id() == 0 : warp_id() < 2;
    if (loads && warp::elect_one()) {
      mbarrier_arrive_expect_tx(full, kBoxBytes);
      tma_load(at(smem, 0, 0), p.in_map, TmaCoordinate{0, 0}, full);
    }
    mbarrier_wait_parity(full, 0);
    st_global(p.out + thread_idx(), ld_shared<float>(at(smem, 0, lane_id())));
  }
};

// Report:
//   05_mbarriers/elected_in_each_warp.hpp:18: kernel elected_in_each_warp, CTA (0, 0, 0), warp 1,
//     lane 0: mbarrier_misuse: mbarrier.arrive.expect_tx on element 0 of full, which has had the
//     one arrival of a phase that its init (broken/kernel.hpp:77) says (it waits for 2048 bytes):
//     its count is too small, or this arrival is one too many
//   05_mbarriers/elected_in_each_warp.hpp:19: kernel elected_in_each_warp, CTA (0, 0, 0), warp 1,
//     lane 0: async_overwrite: cp.async.bulk.tensor writes row 0, column 0 of stage 0 of tile while
//     a cp.async.bulk.tensor into it is in flight that warp 0 lane 0 issued
//     (05_mbarriers/elected_in_each_warp.hpp:19): a wait for element 0 of full, on which it
//     completes, would order them

}  // namespace tegula::broken
