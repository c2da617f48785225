#pragma once

#include "../tensor_memory_kernel.hpp"

namespace tegula::broken {

/// What tcgen05_st stores is there after tcgen05_wait_st.
///
/// The warp loads it back at once.
///
/// PTX ISA: tcgen05.wait.
struct store_not_waited_for : TensorMemoryKernel {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    TensorAddr const base = begin(smem);
    std::uint32_t r[1] = {1};
    tcgen05_st<TensorShape::lanes32_bits32, 1>(r, own(base));
    if (p.repaired) tcgen05_wait_st();
    tcgen05_ld<TensorShape::lanes32_bits32, 1>(r, own(base));
    tcgen05_wait_ld();
    tcgen05_wait_st();
    end(base);
  }
};

// Report:
//   11_tensor_memory/store_not_waited_for.hpp:18: kernel store_not_waited_for, CTA (0, 0, 0), warp
//     3: async_read_early: tcgen05.ld reads lane 96, column 0 of tmem while a tcgen05.st that
//     writes it is in flight that warp 3 issued (11_tensor_memory/store_not_waited_for.hpp:16): a
//     tcgen05_wait_st by the warp that issued it, and the tcgen05 fences around a barrier or an
//     mbarrier's phase for other warps, would order them (4 times in all)

}  // namespace tegula::broken
