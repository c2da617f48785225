#pragma once

#include "../warpgroup_kernel.hpp"

namespace tegula::broken {

/// A wgmma owns its accumulators until its group has been waited for.
///
/// They are written while the tensor cores add to them. (Read, they are NaNs here, whatever they
/// are on a GPU.)
///
/// PTX ISA: wgmma.mma_async, wgmma.wait_group.
struct accumulator_in_flight : WarpgroupKernel<> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    fill(smem);
    float d[8] = {};
    wgmma_fence();
    wgmma<op>(d, matrix_descriptor(tensor(smem.a)), matrix_descriptor(tensor(smem.b)), true);
    wgmma_commit_group();
    if (p.repaired) wgmma_wait_group<0>();
    d[5] = 1.0f;
    wgmma_wait_group<0>();
    st_global(p.out + thread_idx(), d[0]);
  }
};

// Report:
//   07_wgmma/accumulator_in_flight.hpp:18: kernel accumulator_in_flight, CTA (0, 0, 0), warp 0,
//     lane 0: register_race: d[5], row 0, column 9 of D was written while a wgmma.mma_async that
//     owns it was in flight: a wgmma_wait_group that covers it before the write would order them

}  // namespace tegula::broken
