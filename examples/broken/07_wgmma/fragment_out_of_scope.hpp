#pragma once

#include "../warpgroup_kernel.hpp"
#include "tegula/tensor/fragment.hpp"

namespace tegula::broken {

/// Accumulators live until the wgmma that writes them has been waited for.
///
/// The product is only started to bring the operands in, and its fragment ends with the block. The
/// compiler gives the registers to other variables, over which the tensor cores then write.
///
/// PTX ISA: wgmma.mma_async, wgmma.wait_group.
struct fragment_out_of_scope : WarpgroupKernel<> {
  using Accumulators = Fragment<float, Map<Mode<Along<0, 8, 1>>>>;

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    fill(smem);
    {
      Accumulators d;
      wgmma_fence();
      wgmma<op>(d.take<8>(0), matrix_descriptor(tensor(smem.a)), matrix_descriptor(tensor(smem.b)),
                false);
      wgmma_commit_group();
      if (p.repaired) wgmma_wait_group<0>();
    }
    st_global(p.out + thread_idx(), 1.0f);
    wgmma_wait_group<0>();
  }
};

// Report:
//   07_wgmma/fragment_out_of_scope.hpp:22: kernel fragment_out_of_scope, CTA (0, 0, 0), warp 0,
//     lane 31: register_race: the fragment of its accumulators goes out of scope while this
//     wgmma.mma_async is in flight, after the wgmma.commit_group of
//     07_wgmma/fragment_out_of_scope.hpp:24: a wgmma_wait_group that covers it before the end of
//     that scope would order them (128 times in all)

}  // namespace tegula::broken
