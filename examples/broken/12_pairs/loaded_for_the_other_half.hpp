#pragma once

#include "../tensor_memory_kernel.hpp"

namespace tegula::broken {

/// What several pairs share goes to CTAs that have the same place in their pairs.
///
/// CTA 0 loads rows of the first half of B for two pairs. The mask names the odd CTA of the second:
/// the even CTA is told that the bytes are there, and its half has none of them.
///
/// PTX ISA: cp.async.bulk.tensor, .multicast::cluster, .cta_group.
struct loaded_for_the_other_half : TwoPairsKernel {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    clear_others(smem);
    TensorAddr const base = begin(smem);
    SharedAddr const done = shared_address(&smem.done), full = shared_address(&smem.full);
    int const rank = cluster_cta_rank();
    if (thread_idx() == 0 && rank % 2 == 0) {
      mbarrier_arrive_expect_tx(full, kBoxBytes);
      if (rank == 0) load(p, smem, p.repaired ? even_ctas : 0b1001);
      mbarrier_wait_parity(full, 0);
      multiply(smem, base);
      tcgen05_commit_multicast<2>(done, static_cast<std::uint16_t>(both << rank));
    }
    mbarrier_wait_parity(done, 0);
    end(base);
  }
};

// Report:
//   broken/tensor_memory_kernel.hpp:73: kernel loaded_for_the_other_half, CTA (2, 0, 0), warp 0,
//     lane 0: uninitialized_read: tcgen05.mma reads row 0, column 0 of B, which nobody has written
//     (8 times in all)

}  // namespace tegula::broken
