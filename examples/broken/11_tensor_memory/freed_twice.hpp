#pragma once

#include "../tensor_memory_kernel.hpp"

namespace tegula::broken {

/// Tensor memory is freed once, by one warp.
///
/// Two warps free it.
///
/// PTX ISA: tcgen05.dealloc.
struct freed_twice : TensorMemoryKernel {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    TensorAddr const base = begin(smem);
    cta::sync();
    if (warp_id() < (p.repaired ? 1 : 2)) tcgen05_dealloc<32>(base);
  }
};

// Report:
//   11_tensor_memory/freed_twice.hpp:16: kernel freed_twice, CTA (0, 0, 0), warp 1:
//     tensor_memory_misuse: tcgen05.dealloc of 32 columns of tensor memory from 0 on, which have
//     been freed already (allocated at broken/tensor_memory_kernel.hpp:67)

}  // namespace tegula::broken
