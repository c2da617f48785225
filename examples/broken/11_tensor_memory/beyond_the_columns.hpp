#pragma once

#include "../tensor_memory_kernel.hpp"

namespace tegula::broken {

/// Only columns that tcgen05_alloc has given may be touched.
///
/// The load is of 8 columns, of which the last 4 lie beyond the 32.
///
/// PTX ISA: tcgen05.alloc.
struct beyond_the_columns : TensorMemoryKernel {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    TensorAddr const base = begin(smem);
    std::uint32_t r[8] = {};
    for (int column = 0; column < 32; column += 8)
      tcgen05_st<TensorShape::lanes32_bits32, 8>(r, own(base) + tensor_address(0, column));
    tcgen05_wait_st();
    tcgen05_ld<TensorShape::lanes32_bits32, 8>(r,
                                               own(base) + tensor_address(0, p.repaired ? 24 : 28));
    tcgen05_wait_ld();
    end(base);
  }
};

// Report:
//   11_tensor_memory/beyond_the_columns.hpp:19: kernel beyond_the_columns, CTA (0, 0, 0), warp 3:
//     out_of_bounds: tcgen05.ld touches columns 28 to 35 of tensor memory, which lie beyond the 32
//     columns from 0 on that tcgen05.alloc gave (broken/tensor_memory_kernel.hpp:67) (4 times in
//     all)

}  // namespace tegula::broken
