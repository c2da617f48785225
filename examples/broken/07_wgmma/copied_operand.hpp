#pragma once

#include "../warpgroup_kernel.hpp"

namespace tegula::broken {

/// cp.async writes through the generic proxy: what it copied, wgmma reads after the wait, a
/// fence.proxy.async and a barrier.
///
/// The wait and the barrier are there. They are enough for ldmatrix, and not for wgmma.
///
/// PTX ISA: "Async proxy"; fence.proxy.async.
struct copied_operand : WarpgroupKernel<> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    clear(smem.a);
    fence_proxy_async_shared();
    cp_async_cg(shared_address(smem.b.data + 8 * thread_idx()), p.in + 4 * thread_idx());
    cp_async_commit_group();
    cp_async_wait_group<0>();
    if (p.repaired) fence_proxy_async_shared();
    cta::sync();
    float d[8] = {};
    wgmma_fence();
    wgmma<op>(d, matrix_descriptor(tensor(smem.a)), matrix_descriptor(tensor(smem.b)), true);
    wgmma_commit_group();
    wgmma_wait_group<0>();
    st_global(p.out + thread_idx(), d[0]);
  }
};

// Report:
//   07_wgmma/copied_operand.hpp:24: kernel copied_operand, CTA (0, 0, 0), warp 1, lane 31:
//     proxy_race: wgmma.mma_async reads row 0, column 0 of B, which warp 0 lane 0 wrote by cp.async
//     (07_wgmma/copied_operand.hpp:17) after its fence.proxy.async
//     (07_wgmma/copied_operand.hpp:16), without one after that: a fence_proxy_async_shared by every
//     thread that writes it, after that, or by every thread of the warpgroup before the
//     wgmma.mma_async, would order them (15 times in all)

}  // namespace tegula::broken
