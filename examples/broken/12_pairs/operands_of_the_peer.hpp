#pragma once

#include "../tensor_memory_kernel.hpp"

namespace tegula::broken {

/// A product of a pair reads the shared memory of both CTAs: it waits for the operands of both.
///
/// The even CTA waits for its own half only, by a barrier of its own.
///
/// PTX ISA: tcgen05.mma, .cta_group::2.
struct operands_of_the_peer : PairKernel {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    TensorAddr const base = begin(smem);
    SharedAddr const done = shared_address(&smem.done);
    clear(smem);
    if (p.repaired) {
      cluster::sync();
    } else {
      cta::sync();
    }
    if (thread_idx() == 0 && cluster_cta_rank() == 0) {
      multiply(smem, base);
      tcgen05_commit_multicast<2>(done, both);
    }
    mbarrier_wait_parity(done, 0);
    end(base);
  }
};

// Report:
//   broken/tensor_memory_kernel.hpp:73: kernel operands_of_the_peer, CTA (0, 0, 0), warp 0, lane 0:
//     data_race: tcgen05.mma reads row 0, column 0 of B of CTA 1 of the cluster, which warp 0 lane
//     0 of CTA 1 of the cluster wrote by st.shared (broken/tensor_memory_kernel.hpp:47), and
//     nothing orders the two: a fence_proxy_async_shared after the write, and then a cluster::sync
//     or an arrival on an mbarrier and a wait for it, would order them (15 times in all)
//   broken/tensor_memory_kernel.hpp:73: kernel operands_of_the_peer, CTA (0, 0, 0), warp 0, lane 0:
//     data_race: tcgen05.mma reads row 0, column 0 of A of CTA 1 of the cluster, which warp 0 lane
//     0 of CTA 1 of the cluster wrote by st.shared (broken/tensor_memory_kernel.hpp:47), and
//     nothing orders the two: a fence_proxy_async_shared after the write, and then a cluster::sync
//     or an arrival on an mbarrier and a wait for it, would order them (113 times in all)

}  // namespace tegula::broken
