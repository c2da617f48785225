#pragma once

#include "../tensor_memory_kernel.hpp"

namespace tegula::broken {

/// tcgen05_alloc waits until so many columns are free.
///
/// The CTA has 32 of the 512, and asks for 512 more before it frees them.
///
/// PTX ISA: tcgen05.alloc.
struct no_columns_left : TensorMemoryKernel {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    TensorAddr const base = begin(smem);
    cta::sync();
    if (warp_id() == 0) {
      if (p.repaired) tcgen05_dealloc<32>(base);
      tcgen05_alloc<512>(shared_address(&smem.tmem));
      warp::sync();
      tcgen05_dealloc<512>(ld_shared<std::uint32_t>(shared_address(&smem.tmem)));
      if (!p.repaired) tcgen05_dealloc<32>(base);
    }
  }
};

// Report:
//   11_tensor_memory/no_columns_left.hpp:18: kernel no_columns_left, CTA (0, 0, 0): deadlock: warp
//     0 waits at tcgen05.alloc (11_tensor_memory/no_columns_left.hpp:18) for 512 columns of tensor
//     memory, of which 480 are free; warps 1-3 exited

}  // namespace tegula::broken
