#pragma once

#include "../tensor_memory_kernel.hpp"

namespace tegula::broken {

/// A CTA that has given up its permit allocates no more.
///
/// PTX ISA: tcgen05.relinquish_alloc_permit.
struct permit_given_up : TensorMemoryKernel {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    TensorAddr const base = begin(smem);
    cta::sync();
    if (warp_id() == 0) {
      if (!p.repaired) tcgen05_relinquish_alloc_permit();
      tcgen05_alloc<32>(shared_address(&smem.tmem));
      if (p.repaired) tcgen05_relinquish_alloc_permit();
      warp::sync();
      tcgen05_dealloc<32>(ld_shared<std::uint32_t>(shared_address(&smem.tmem)));
    }
    end(base);
  }
};

// Report:
//   11_tensor_memory/permit_given_up.hpp:16: kernel permit_given_up, CTA (0, 0, 0), warp 0:
//     tensor_memory_misuse: tcgen05.alloc after the CTA's tcgen05.relinquish_alloc_permit
//     (11_tensor_memory/permit_given_up.hpp:15)

}  // namespace tegula::broken
