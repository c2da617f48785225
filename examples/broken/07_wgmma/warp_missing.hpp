#pragma once

#include "../warpgroup_kernel.hpp"

namespace tegula::broken {

/// All four warps of a warpgroup execute wgmma together.
///
/// The warp whose rows lie outside of the tensor has left.
///
/// PTX ISA: wgmma.mma_async: .sync.aligned.
struct warp_missing : WarpgroupKernel<> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    fill(smem);
    if (!p.repaired && warp_id() == 3) return;
    float d[8] = {};
    wgmma_fence();
    wgmma<op>(d, matrix_descriptor(tensor(smem.a)), matrix_descriptor(tensor(smem.b)), true);
    wgmma_commit_group();
    wgmma_wait_group<0>();
    if (warp_id() < 3) st_global(p.out + thread_idx(), d[0]);
  }
};

// Report:
//   07_wgmma/warp_missing.hpp:17: kernel warp_missing, CTA (0, 0, 0), warp 0: divergence:
//     wgmma.fence needs all warps of the warpgroup, but threads of warp 3 exited

}  // namespace tegula::broken
