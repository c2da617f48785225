#pragma once

#include "../warpgroup_kernel.hpp"

namespace tegula::broken {

/// Between two setmaxnreg the warps of the warpgroup wait for each other.
///
/// Each waits for the lanes of its warp alone: a warp may be at the second while others are at
/// the first.
///
/// PTX ISA: setmaxnreg.
struct registers_moved_twice : WarpgroupKernel<> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage&) const {
    setmaxnreg_dec<40>();
    st_global(p.out + thread_idx(), 1.0f);
    if (p.repaired) cta::bar_sync(1, 128);
    setmaxnreg_inc<168>();
  }
};

// Report:
//   07_wgmma/registers_moved_twice.hpp:18: kernel registers_moved_twice, CTA (0, 0, 0), warp 2:
//     register_race: setmaxnreg.inc by a warpgroup whose warps have not synchronised since their
//     setmaxnreg.dec (07_wgmma/registers_moved_twice.hpp:15): a cta::bar_sync of the warpgroup
//     between them would order them

}  // namespace tegula::broken
