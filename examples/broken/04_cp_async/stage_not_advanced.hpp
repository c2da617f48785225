#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// What has been copied is read before the next copy comes to its place.
///
/// The stage never advances: each step reads what step 0 has read, and the copies go, one over the
/// other, into the stage beside it.
struct stage_not_advanced : Kernel<32> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    auto const fill = [&](int step, int stage) {
      cp_async_ca<4>(at(smem, 0, lane_id(), stage), p.in + 32 * step + lane_id());
      cp_async_commit_group();
    };
    fill(0, 0);
    for (int step = 0, stage = 0; step < 4; ++step) {
      cp_async_wait_group<0>();
      if (step < 3) fill(step + 1, 1 - stage);
      st_global(p.out + 32 * step + lane_id(), ld_shared<float>(at(smem, 0, lane_id(), stage)));
      if (p.repaired) stage = 1 - stage;
    }
  }
};

// Report:
//   04_cp_async/stage_not_advanced.hpp:14: kernel stage_not_advanced, CTA (0, 0, 0), warp 0, lane
//     0: unread_copy: cp.async writes over what a cp.async of warp 0 lane 0
//     (04_cp_async/stage_not_advanced.hpp:14) has brought, from row 0, column 0 of stage 1 of tile
//     on, and nobody has read any of it (2 times in all)

}  // namespace tegula::broken
