#pragma once

#include "../warpgroup_kernel.hpp"

namespace tegula::broken {

/// Accumulators that the program wrote need a wgmma_fence before the next wgmma.
///
/// A wgmma after a wgmma of the same shape needs none. But in between the sum is rescaled.
///
/// PTX ISA: wgmma.fence.
struct scaled_without_fence : WarpgroupKernel<> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    fill(smem);
    float d[8] = {};
    wgmma_fence();
    for (int step = 0; step < 2; ++step) {
      if (step == 1) d[3] = 0.5f * d[3] + 1;
      if (step == 1 && p.repaired) wgmma_fence();
      wgmma<op>(d, matrix_descriptor(local_tile<64, 16>(tensor(smem.a), 0, step)),
                matrix_descriptor(local_tile<16, 16>(tensor(smem.b), 0, step)), true);
      wgmma_commit_group();
      wgmma_wait_group<0>();
    }
    st_global(p.out + thread_idx(), d[0]);
  }
};

// Report:
//   07_wgmma/scaled_without_fence.hpp:20: kernel scaled_without_fence, CTA (0, 0, 0), warp 0, lane
//     0: register_race: d[3], row 8, column 1 of D was written since the wgmma.mma_async before
//     (07_wgmma/scaled_without_fence.hpp:20), without a wgmma.fence after that: a wgmma_fence
//     between the two would order them

}  // namespace tegula::broken
