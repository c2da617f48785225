#pragma once

#include "../kernel.hpp"

namespace tegula::museum {

/// `wgmma` reads shared memory through the asynchronous proxy, for all four warps of the warpgroup.
///
/// In a decode kernel derived from FlashMLA a warpgroup stores the probabilities P to shared memory
/// and issues the `wgmma` that reads them. Two things are missing: a fence between the proxies, and
/// a barrier of the 128 threads, since the `wgmma` reads rows that other warps have stored. The
/// outputs differed from run to run, the log-sum-exp never did.
///
/// Mend: a `fence.proxy.async` by every thread that has written, then a barrier of the warpgroup.
/// Seen in: FlashMLA-ETAP, https://github.com/pengcuo/FlashMLA-ETAP/pull/3
/// compute-sanitizer: no: read by wgmma
/// ConSan: yes: proxies
/// CUTLASS: not documented
struct p_without_a_fence : WarpgroupKernel<> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    fill(smem);
    float d[8] = {};
    constexpr int words = sizeof(smem.a) / 4;
    for (int i = thread_idx(); i < words; i += 128)  // P, by all threads
      st_shared(shared_address(smem.a.data) + static_cast<SharedAddr>(4 * i),
                std::uint32_t{0x3f803f80});
    if (p.repaired) {
      fence_proxy_async_shared();
      cta::bar_sync(1, 128);
    }
    wgmma_fence();
    wgmma<op>(d, matrix_descriptor(tensor(smem.a)), matrix_descriptor(tensor(smem.b)), true);
    wgmma_commit_group();
    wgmma_wait_group<0>();
    st_global(p.out + thread_idx(), d[0]);
  }
};

// Report:
//   04_wgmma/p_without_a_fence.hpp:32: kernel p_without_a_fence, CTA (0, 0, 0), warp 1, lane 31:
//     data_race: wgmma.mma_async reads row 0, column 0 of A, which warp 0 lane 0 wrote by st.shared
//     (04_wgmma/p_without_a_fence.hpp:25), and nothing orders the two: a fence_proxy_async_shared
//     after the write, and then a barrier or an arrival on an mbarrier and a wait for it, would
//     order them (57 times in all)

}  // namespace tegula::museum
