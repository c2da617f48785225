#pragma once

#include "../tensor_memory_kernel.hpp"

namespace tegula::broken {

/// Tensor memory is freed before the CTA ends.
///
/// The CTAs that come to the multiprocessor next find none.
///
/// PTX ISA: tcgen05.alloc.
struct not_freed : TensorMemoryKernel {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    TensorAddr const base = begin(smem);
    cta::sync();
    if (p.repaired && warp_id() == 0) tcgen05_dealloc<32>(base);
  }
};

// Report:
//   broken/tensor_memory_kernel.hpp:67: kernel not_freed, CTA (0, 0, 0), warp 0:
//     tensor_memory_misuse: the CTA exits and has not freed the 32 columns of tensor memory that
//     tcgen05.alloc gave it: a tcgen05_dealloc before the exit would

}  // namespace tegula::broken
