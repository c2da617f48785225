#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// A box begins at a multiple of 16 bytes of the tensor's innermost axis, and of 128 bytes of
/// shared memory.
///
/// A halo of one element to the left: an H100 ends the kernel with "an illegal instruction
/// was encountered".
///
/// PTX ISA: cp.async.bulk.tensor.
struct box_misplaced : Kernel<32> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    init(smem);
    SharedAddr const full = shared_address(&smem.full[0]);
    int const halo = p.repaired ? 4 : 1;
    if (lane_id() == 0) {
      mbarrier_arrive_expect_tx(full, kBoxBytes);
      tma_load(at(smem, 0, 0), p.in_map, TmaCoordinate{-halo, 0}, full);
    }
    mbarrier_wait_parity(full, 0);
    st_global(p.out + lane_id(), ld_shared<float>(at(smem, 0, lane_id())));
  }
};

// Report:
//   06_tma/box_misplaced.hpp:21: kernel box_misplaced, CTA (0, 0, 0), warp 0, lane 0: misaligned:
//     cp.async.bulk.tensor of a box that begins at coordinate -1 of axis 0, which is byte -4 of its
//     row: that must be a multiple of 16

}  // namespace tegula::broken
