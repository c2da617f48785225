#pragma once

#include "../tensor_memory_kernel.hpp"

namespace tegula::broken {

/// A CTA of a pair waits for all that arrives at its mbarriers before it exits.
///
/// The even CTA's tcgen05_commit gives a stage back to both producers. The odd CTA's does not load
/// again, so that nobody there waits for it.
///
/// PTX ISA: tcgen05.commit, .multicast::cluster.
struct exit_before_the_commit : PairKernel {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    clear(smem);
    TensorAddr const base = begin(smem);
    SharedAddr const done = shared_address(&smem.done), empty = shared_address(&smem.empty);
    if (thread_idx() == 0 && cluster_cta_rank() == 0) {
      multiply(smem, base);
      tcgen05_commit_multicast<2>(empty, both);
      tcgen05_commit_multicast<2>(done, both);
    }
    mbarrier_wait_parity(done, 0);
    if (p.repaired) mbarrier_wait_parity(empty, 0);
    end(base);
  }
};

// Report:
//   12_pairs/exit_before_the_commit.hpp:20: kernel exit_before_the_commit, CTA (0, 0, 0), warp 0,
//     lane 0: exited_cta: the CTA of rank 1 exits, and nothing orders that after the tcgen05.commit
//     on element 0 of empty by CTA 0 of the cluster: a wait of that CTA for the mbarrier's phase
//     before it exits would order them

}  // namespace tegula::broken
