#pragma once

#include "../tensor_memory_kernel.hpp"

namespace tegula::broken {

/// A product of a pair works on the tensor memory of both CTAs until its commit has arrived.
///
/// The commit tells the even CTA only; the odd one frees its columns meanwhile.
///
/// PTX ISA: tcgen05.commit, .multicast::cluster.
struct peer_not_waited_for : PairKernel {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    clear(smem);
    TensorAddr const base = begin(smem);
    SharedAddr const done = shared_address(&smem.done);
    bool const even = cluster_cta_rank() == 0;
    if (thread_idx() == 0 && even) {
      multiply(smem, base);
      if (p.repaired) {
        tcgen05_commit_multicast<2>(done, both);
      } else {
        tcgen05_commit<2>(done);
      }
    }
    cluster::sync();
    if (even || p.repaired) mbarrier_wait_parity(done, 0);
    if (warp_id() == 0) tcgen05_dealloc<32, 2>(base);
    cluster::sync();
  }
};

// Report:
//   12_pairs/peer_not_waited_for.hpp:28: kernel peer_not_waited_for, CTA (1, 0, 0), warp 0:
//     data_race: tcgen05.dealloc of columns 0 to 31 of tensor memory, while a tcgen05.mma of them
//     is in flight (broken/tensor_memory_kernel.hpp:73): a tcgen05_commit_multicast in the place of
//     the tcgen05_commit after it (12_pairs/peer_not_waited_for.hpp:23), to CTA 1 of the cluster,
//     too, and a wait for its mbarrier there, would order them

}  // namespace tegula::broken
