#pragma once

#include "../warpgroup_kernel.hpp"

namespace tegula::broken {

/// An operand is read by the swizzle that it was laid out by.
///
/// The descriptor says 128 bytes, as the tile's layout does; the tensor map that loads it was
/// encoded without a swizzle.
///
/// PTX ISA: "Matrix Descriptor Format", "Swizzling modes".
struct other_swizzle : WarpgroupKernel<> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    SharedAddr const full = shared_address(&smem.full);
    if (thread_idx() == 0) mbarrier_init(full, 1), fence_mbarrier_init();
    fill(smem);
    if (thread_idx() == 0) {
      TensorMap const& map = p.repaired ? p.swizzled_map : p.in_map;
      mbarrier_arrive_expect_tx(full, 2 * kBoxBytes);
      for (int row = 0; row < 16; row += 8)
        tma_load(shared_address(smem.b.data) + static_cast<SharedAddr>(128 * row), map,
                 TmaCoordinate{0, row}, full);
    }
    mbarrier_wait_parity(full, 0);
    float d[8] = {};
    wgmma_fence();
    wgmma<op>(d, matrix_descriptor(tensor(smem.a)), matrix_descriptor(tensor(smem.b)), true);
    wgmma_commit_group();
    wgmma_wait_group<0>();
    st_global(p.out + thread_idx(), d[0]);
  }
};

// Report:
//   07_wgmma/other_swizzle.hpp:28: kernel other_swizzle, CTA (0, 0, 0), warp 0: wrong_layout:
//     wgmma.mma_async reads row 1, column 0 of B by the swizzle of 128 bytes, where a
//     cp.async.bulk.tensor that warp 0 lane 0 issued (07_wgmma/other_swizzle.hpp:22) has put other
//     elements, by no swizzle

}  // namespace tegula::broken
