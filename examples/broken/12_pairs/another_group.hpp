#pragma once

#include "../tensor_memory_kernel.hpp"

namespace tegula::broken {

/// All tcgen05 instructions of a kernel have the same .cta_group.
///
/// The commit is left as it was when the kernel worked with one CTA.
///
/// PTX ISA: tcgen05, "CTA pair".
struct another_group : PairKernel {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    clear(smem);
    TensorAddr const base = begin(smem);
    SharedAddr const done = shared_address(&smem.done);
    if (thread_idx() == 0 && cluster_cta_rank() == 0) {
      multiply(smem, base);
      if (p.repaired) {
        tcgen05_commit_multicast<2>(done, both);
      } else {
        tcgen05_commit_multicast<1>(done, both);
      }
    }
    mbarrier_wait_parity(done, 0);
    end(base);
  }
};

// Report:
//   12_pairs/another_group.hpp:22: kernel another_group, CTA (0, 0, 0), warp 0, lane 0:
//     tensor_memory_misuse: tcgen05.commit with .cta_group::1, where the kernel's others have
//     .cta_group::2 (broken/tensor_memory_kernel.hpp:67): all of a kernel have the same

}  // namespace tegula::broken
