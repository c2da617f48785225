#pragma once

#include "../warpgroup_kernel.hpp"

namespace tegula::broken {

/// The first wgmma comes after a wgmma_fence.
///
/// The accumulators were set to zero by ordinary instructions, which the tensor cores need not
/// have seen.
///
/// PTX ISA: wgmma.fence.
struct no_fence : WarpgroupKernel<> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    fill(smem);
    float d[8] = {};
    if (p.repaired) wgmma_fence();
    wgmma<op>(d, matrix_descriptor(tensor(smem.a)), matrix_descriptor(tensor(smem.b)), true);
    wgmma_commit_group();
    wgmma_wait_group<0>();
    st_global(p.out + thread_idx(), d[0]);
  }
};

// Report:
//   07_wgmma/no_fence.hpp:18: kernel no_fence, CTA (0, 0, 0), warp 2: register_race: the
//     warpgroup's first wgmma.mma_async comes after no wgmma.fence: a wgmma_fence before it would
//     order it after the writes to its registers

}  // namespace tegula::broken
