#pragma once

#include "../kernel.hpp"

namespace tegula::museum {

/// `wgmma.wait_group` waits for the operations of the warpgroup that executes it.
///
/// In Triton and in TileLang a wait for `wgmma` was taken for a wait of the whole CTA. With two
/// warpgroups that read the same operand, the first one to finish goes on, and refills it with the
/// next tile, while the other one's `wgmma` still reads. Both projects now put a barrier between
/// the wait and the stores.
///
/// Mend: a barrier of both warpgroups after the wait.
/// Seen in: Triton, https://github.com/triton-lang/triton/issues/11047
/// Seen in: TileLang, https://github.com/tile-ai/tilelang/issues/2613
/// compute-sanitizer: no: read by wgmma
/// ConSan: inside a partition
/// CUTLASS: yes: release before the MMA has read
struct refilled_behind_one_warpgroup : WarpgroupKernel<2> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    fill(smem);
    float d[8] = {};
    for (int tile = 0; tile < 2; ++tile) {
      wgmma_fence();
      wgmma<op>(d, matrix_descriptor(tensor(smem.a)), matrix_descriptor(tensor(smem.b)), true);
      wgmma_commit_group();
      wgmma_wait_group<0>();        // this warpgroup's
      if (p.repaired) cta::sync();  // and the other's
      clear(smem.b);                // the next tile, by all threads
      fence_proxy_async_shared();
      cta::sync();
    }
    st_global(p.out + thread_idx(), d[0]);
  }
};

// Report:
//   broken/warpgroup_kernel.hpp:30: kernel refilled_behind_one_warpgroup, CTA (0, 0, 0), warp 7,
//     lane 31: async_overwrite: st.shared writes row 7, column 6 of B while a wgmma.mma_async that
//     reads it is in flight that warp 2 lane 31 issued
//     (04_wgmma/refilled_behind_one_warpgroup.hpp:26): a wgmma_wait_group that covers it, and then
//     a barrier or an mbarrier's phase for threads of other warps, would order them; where the
//     wgmma.mma_async is to read what is written, a barrier between the two would (256 times in
//     all)

}  // namespace tegula::museum
