#pragma once

#include "../warpgroup_kernel.hpp"

namespace tegula::broken {

/// A stage that a wgmma reads is given back after the wait for its group.
///
/// The consumers arrive at the empty mbarrier with the wgmma in flight, and the producer loads over
/// its operand.
///
/// PTX ISA: wgmma.wait_group.
struct released_before_wait : WarpgroupKernel<2> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    fill(smem);
    SharedAddr const full = shared_address(&smem.full), empty = shared_address(&smem.empty);
    if (thread_idx() == 0) mbarrier_init(full, 1), mbarrier_init(empty, 128), fence_mbarrier_init();
    cta::sync();
    if (thread_idx() < 128) {
      float d[8] = {};
      wgmma_fence();
      wgmma<op>(d, matrix_descriptor(tensor(smem.a)), matrix_descriptor(tensor(smem.b)), true);
      wgmma_commit_group();
      if (p.repaired) wgmma_wait_group<0>();
      mbarrier_arrive(empty);
      wgmma_wait_group<0>();
      mbarrier_wait_parity(full, 0);
    } else if (thread_idx() == 128) {
      mbarrier_wait_parity(empty, 0);
      mbarrier_arrive_expect_tx(full, 2048);
      bulk_load(shared_address(smem.b.data), p.in, 2048, full);
    }
  }
};

// Report:
//   07_wgmma/released_before_wait.hpp:31: kernel released_before_wait, CTA (0, 0, 0), warp 4, lane
//     0: async_overwrite: cp.async.bulk writes row 0, column 0 of B, which warp 0 reads by
//     wgmma.mma_async (07_wgmma/released_before_wait.hpp:22), and nothing orders that before: an
//     arrival of warp 0 on an mbarrier after its wgmma_wait_group, and a wait for it, would order
//     them

}  // namespace tegula::broken
