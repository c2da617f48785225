#pragma once

#include "../tensor_memory_kernel.hpp"

namespace tegula::broken {

/// A product of a pair of CTAs is started by one thread of one of the two.
///
/// Each CTA starts it, as it would if it worked alone.
///
/// PTX ISA: tcgen05, "Issue Granularity".
struct both_start : PairKernel {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    clear(smem);
    TensorAddr const base = begin(smem);
    SharedAddr const done = shared_address(&smem.done);
    bool const starts = cluster_cta_rank() == 0 || !p.repaired;
    if (thread_idx() == 0 && starts) {
      multiply(smem, base);
      if (p.repaired) {
        tcgen05_commit_multicast<2>(done, both);
      } else {
        tcgen05_commit<2>(done);
      }
    }
    mbarrier_wait_parity(done, 0);
    end(base);
  }
};

// Report:
//   broken/tensor_memory_kernel.hpp:73: kernel both_start, CTA (1, 0, 0), warp 0, lane 0:
//     async_overwrite: tcgen05.mma writes lane 0, column 0 of tmem of CTA 0 of the cluster while a
//     tcgen05.mma that writes it is in flight that warp 0 lane 0 of CTA 0 of the cluster issued
//     (broken/tensor_memory_kernel.hpp:73); one CTA of a pair starts its products: those of both
//     are not performed in an order: a tcgen05_commit_multicast in the place of the tcgen05_commit
//     after it (12_pairs/both_start.hpp:23), to CTA 1 of the cluster, too, and a wait for its
//     mbarrier there, would order them (2 times in all)

}  // namespace tegula::broken
