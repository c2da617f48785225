#pragma once

#include "../warpgroup_kernel.hpp"

namespace tegula::broken {

/// The wgmma in flight hold no more registers than the warpgroup has.
///
/// Four sets of 8 accumulators are multiplied side by side by a warpgroup that has kept 24
/// registers. (A compiler would make the wgmma wait for each other, or spill what it cannot hold.)
///
/// PTX ISA: setmaxnreg.
struct too_many_accumulators : WarpgroupKernel<> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    fill(smem);
    if (p.repaired) {
      setmaxnreg_dec<56>();
    } else {
      setmaxnreg_dec<24>();
    }
    float d[4][8] = {};
    wgmma_fence();
    for (int i = 0; i < 4; ++i)
      wgmma<op>(d[i], matrix_descriptor(local_tile<64, 16>(tensor(smem.a), 0, i)),
                matrix_descriptor(local_tile<16, 16>(tensor(smem.b), 0, i)), true);
    wgmma_commit_group();
    wgmma_wait_group<0>();
    st_global(p.out + thread_idx(), d[0][0] + d[1][0] + d[2][0] + d[3][0]);
  }
};

// Report:
//   07_wgmma/too_many_accumulators.hpp:24: kernel too_many_accumulators, CTA (0, 0, 0), warp 1:
//     too_few_registers: with this wgmma.mma_async, those in flight hold 32 registers of a thread,
//     accumulators and A, and the warpgroup has 24 since its setmaxnreg.dec
//     (07_wgmma/too_many_accumulators.hpp:19)

}  // namespace tegula::broken
