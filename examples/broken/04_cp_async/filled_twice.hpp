#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// Two copies in flight go to two places.
///
/// The stage does not advance: the second step's copy overtakes the first one's, or not.
struct filled_twice : Kernel<32> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    for (int step = 0; step < 2; ++step) {
      int const stage = p.repaired ? step : 0;
      cp_async_ca<4>(at(smem, 0, lane_id(), stage), p.in + 32 * step + lane_id());
      cp_async_commit_group();
    }
    cp_async_wait_group<0>();
    st_global(p.out + lane_id(), ld_shared<float>(at(smem, 0, lane_id())));
  }
};

// Report:
//   04_cp_async/filled_twice.hpp:14: kernel filled_twice, CTA (0, 0, 0), warp 0, lane 0:
//     async_overwrite: cp.async writes row 0, column 0 of stage 0 of tile while a cp.async into it
//     is in flight that warp 0 lane 0 issued (04_cp_async/filled_twice.hpp:14) and has not waited
//     for: a cp.async.wait_group that covers it would order them (32 times in all)

}  // namespace tegula::broken
