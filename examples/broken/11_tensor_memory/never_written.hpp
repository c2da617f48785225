#pragma once

#include "../tensor_memory_kernel.hpp"

namespace tegula::broken {

/// A column of tensor memory is written before it is loaded.
///
/// Nobody has multiplied into it, nor stored to it.
///
/// PTX ISA: tcgen05.ld.
struct never_written : TensorMemoryKernel {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    TensorAddr const base = begin(smem);
    if (p.repaired) {
      std::uint32_t const zero[1] = {0};
      tcgen05_st<TensorShape::lanes32_bits32, 1>(zero, own(base));
      tcgen05_wait_st();
    }
    std::uint32_t r[1];
    tcgen05_ld<TensorShape::lanes32_bits32, 1>(r, own(base));
    tcgen05_wait_ld();
    end(base);
  }
};

// Report:
//   11_tensor_memory/never_written.hpp:21: kernel never_written, CTA (0, 0, 0), warp 3:
//     uninitialized_read: tcgen05.ld reads lane 96, column 0 of tmem, which nobody has written (4
//     times in all)

}  // namespace tegula::broken
