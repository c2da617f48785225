#pragma once

#include "../warpgroup_kernel.hpp"

namespace tegula::broken {

/// Operands that threads wrote to shared memory, wgmma reads after a fence.proxy.async and
/// a barrier.
///
/// wgmma reads through the asynchronous proxy, like TMA. wgmma_fence is about registers, and
/// no substitute.
///
/// PTX ISA: wgmma.mma_async: asynchronous proxy; fence.proxy.async.
struct operand_without_proxy_fence : WarpgroupKernel<> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    clear(smem.a);
    clear(smem.b);
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
//   07_wgmma/operand_without_proxy_fence.hpp:22: kernel operand_without_proxy_fence, CTA (0, 0, 0),
//     warp 1, lane 31: proxy_race: wgmma.mma_async reads row 0, column 0 of B, which warp 0 lane 0
//     wrote by st.shared (broken/warpgroup_kernel.hpp:30) without a fence.proxy.async after that: a
//     fence_proxy_async_shared by every thread that writes it, after that, or by every thread of
//     the warpgroup before the wgmma.mma_async, would order them (15 times in all)
//   07_wgmma/operand_without_proxy_fence.hpp:22: kernel operand_without_proxy_fence, CTA (0, 0, 0),
//     warp 1, lane 31: proxy_race: wgmma.mma_async reads row 0, column 0 of A, which warp 0 lane 0
//     wrote by st.shared (broken/warpgroup_kernel.hpp:30) without a fence.proxy.async after that: a
//     fence_proxy_async_shared by every thread that writes it, after that, or by every thread of
//     the warpgroup before the wgmma.mma_async, would order them (57 times in all)

}  // namespace tegula::broken
