#pragma once

#include "../warpgroup_kernel.hpp"

namespace tegula::broken {

/// setmaxnreg.dec goes down and setmaxnreg.inc up.
///
/// "Down" to more registers than the warpgroup has: 65536 for 384 threads are 168 each.
///
/// PTX ISA: setmaxnreg.
struct wrong_direction : WarpgroupKernel<3> {
  static constexpr int min_ctas_per_sm = 1;

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage&) const {
    if (thread_idx() >= 128) return;
    if (p.repaired) {
      setmaxnreg_dec<160>();
    } else {
      setmaxnreg_dec<176>();
    }
  }
};

// Report:
//   07_wgmma/wrong_direction.hpp:20: kernel wrong_direction, CTA (0, 0, 0), warp 3:
//     invalid_operand: setmaxnreg.dec to 176 registers a thread, above the 168 that the warpgroup
//     has

}  // namespace tegula::broken
