#pragma once

#include "../tensor_memory_kernel.hpp"

namespace tegula::broken {

/// Tensor memory of a pair is allocated by a warp of each of its CTAs.
///
/// The even CTA waits in its tcgen05_alloc for the odd one, which waits for it to have allocated.
///
/// PTX ISA: tcgen05.alloc, .cta_group::2.
struct allocated_by_one : PairKernel {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    SharedAddr const tmem = shared_address(&smem.tmem);
    bool const allocates = cluster_cta_rank() == 0 || p.repaired;
    if (warp_id() == 0 && allocates) tcgen05_alloc<32, 2>(tmem);
    cluster::sync();
    if (warp_id() == 0 && allocates) tcgen05_dealloc<32, 2>(ld_shared<std::uint32_t>(tmem));
  }
};

// Report:
//   12_pairs/allocated_by_one.hpp:17: kernel allocated_by_one, CTA (0, 0, 0): deadlock: in CTA 0 of
//     the cluster, warp 0 waits at tcgen05.alloc (12_pairs/allocated_by_one.hpp:16) for 32 columns
//     of tensor memory, of which 512 are free, and for CTA 1, the other of the pair, to ask for
//     them, too; warps 1-3 wait at the cluster's barrier (12_pairs/allocated_by_one.hpp:17), where
//     7 of 8 warps have arrived; in CTA 1 of the cluster, warps 0-3 wait at the cluster's barrier
//     (12_pairs/allocated_by_one.hpp:17), where 7 of 8 warps have arrived

}  // namespace tegula::broken
