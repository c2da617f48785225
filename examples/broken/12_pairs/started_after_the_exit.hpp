#pragma once

#include "../tensor_memory_kernel.hpp"

namespace tegula::broken {

/// A product of a pair reads the shared memory of both CTAs: both stay until it is over.
///
/// The odd CTA has written its half of the operands, frees its tensor memory and exits. The even
/// one then writes its own half, and starts the product.
///
/// PTX ISA: tcgen05.mma, .cta_group::2.
struct started_after_the_exit : PairKernel {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    bool const even = cluster_cta_rank() == 0;
    if (!even) clear(smem);
    TensorAddr const base = begin(smem);
    SharedAddr const done = shared_address(&smem.done);
    if (even) {
      clear(smem);
      cta::sync();
    }
    if (thread_idx() == 0 && even) {
      multiply(smem, base);
      tcgen05_commit_multicast<2>(done, both);
    }
    if (even || p.repaired) mbarrier_wait_parity(done, 0);
    if (warp_id() == 0) tcgen05_dealloc<32, 2>(base);
  }
};

// Report:
//   broken/tensor_memory_kernel.hpp:73: kernel started_after_the_exit, CTA (0, 0, 0), warp 0, lane
//     0: exited_cta: tcgen05.mma of a pair of CTAs, of which that of rank 1 has exited: its tensor
//     core, its shared memory and its tensor memory take part: a wait of that CTA for a
//     tcgen05_commit of the product before it frees its columns and exits would order them
//   12_pairs/started_after_the_exit.hpp:25: kernel started_after_the_exit, CTA (0, 0, 0), warp 0,
//     lane 0: exited_cta: tcgen05.commit to element 0 of done of CTA 1 of the cluster, which has
//     exited: a CTA must stay until its peers are done with its shared memory: a cluster::sync
//     before that CTA exits would order the two

}  // namespace tegula::broken
