#pragma once

#include "../warpgroup_kernel.hpp"

namespace tegula::broken {

/// setmaxnreg.inc waits until the CTA has that many registers free.
///
/// The consumers ask for 240 each, and the producer has not given any of its 168 away.
///
/// PTX ISA: setmaxnreg.
struct registers_not_freed : WarpgroupKernel<3> {
  static constexpr int min_ctas_per_sm = 1;

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage&) const {
    if (thread_idx() < 128) {
      if (p.repaired) setmaxnreg_dec<24>();
    } else {
      setmaxnreg_inc<240>();
    }
  }
};

// Report:
//   07_wgmma/registers_not_freed.hpp:19: kernel registers_not_freed, CTA (0, 0, 0): deadlock:
//     warpgroup 1 waits at setmaxnreg (07_wgmma/registers_not_freed.hpp:19) for 9216 registers
//     more, where 0 of the CTA's 64512 are free; warpgroup 2 waits at setmaxnreg
//     (07_wgmma/registers_not_freed.hpp:19) for 9216 registers more, where 0 of the CTA's 64512 are
//     free; warps 0-3 exited

}  // namespace tegula::broken
