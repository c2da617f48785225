#pragma once

#include "../tensor_memory_kernel.hpp"

namespace tegula::broken {

/// Tensor memory of a pair is freed by a warp of each of its CTAs.
///
/// The CTA that starts the products frees it, the other exits.
///
/// PTX ISA: tcgen05.dealloc, .cta_group::2.
struct freed_by_one : PairKernel {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    TensorAddr const base = begin(smem);
    cluster::sync();
    if (warp_id() == 0 && (cluster_cta_rank() == 0 || p.repaired)) tcgen05_dealloc<32, 2>(base);
  }
};

// Report:
//   broken/tensor_memory_kernel.hpp:67: kernel freed_by_one, CTA (1, 0, 0), warp 0:
//     tensor_memory_misuse: the CTA exits and has not freed the 32 columns of tensor memory that
//     tcgen05.alloc gave it: a tcgen05_dealloc by each CTA of the pair before the exit would

}  // namespace tegula::broken
