#pragma once

#include "../kernel.hpp"

namespace tegula::museum {

/// A `wgmma` that is left in flight keeps its operands: the next one needs other buffers.
///
/// Triton's pipeliner keeps one `wgmma` in flight while the next tile is fetched. It asked whether
/// the loop had been pipelined, and not whether both operands had more than one buffer. Where one
/// of them had a single buffer, the next tile overwrote what the tensor cores were reading.
///
/// Mend: all warps wait for the `wgmma` and meet before the refill, or there is a second buffer.
/// Seen in: Triton, https://github.com/triton-lang/triton/pull/3106
/// compute-sanitizer: no: read by wgmma
/// ConSan: yes
/// CUTLASS: yes: release before the MMA has read
struct one_buffer_for_two_dots : WarpgroupKernel<> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    fill(smem);
    float d[8] = {};
    for (int tile = 0; tile < 2; ++tile) {
      wgmma_fence();
      wgmma<op>(d, matrix_descriptor(tensor(smem.a)), matrix_descriptor(tensor(smem.b)), true);
      wgmma_commit_group();
      if (p.repaired) {  // with a second buffer for B it could fly on
        wgmma_wait_group<0>();
        cta::sync();  // every warp has waited for its part of it
      }
      cp_async_cg(shared_address(smem.b.data + 8 * thread_idx()), p.in + 4 * thread_idx());
      cp_async_commit_group();
      cp_async_wait_group<0>();
      fence_proxy_async_shared();
      cta::sync();
    }
    wgmma_wait_group<0>();
    st_global(p.out + thread_idx(), d[0]);
  }
};

// Report:
//   04_wgmma/one_buffer_for_two_dots.hpp:30: kernel one_buffer_for_two_dots, CTA (0, 0, 0), warp 0,
//     lane 0: async_overwrite: cp.async writes row 0, column 0 of B while a wgmma.mma_async that
//     reads it is in flight that warp 1 lane 31 issued (04_wgmma/one_buffer_for_two_dots.hpp:24): a
//     wgmma_wait_group that covers it, and then a barrier or an mbarrier's phase for threads of
//     other warps, would order them (64 times in all)

}  // namespace tegula::museum
