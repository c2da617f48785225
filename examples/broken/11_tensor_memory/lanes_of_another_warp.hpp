#pragma once

#include "../tensor_memory_kernel.hpp"

namespace tegula::broken {

/// A warp reaches a quarter of the lanes: warp w of a warpgroup lanes 32 w to 32 w + 31.
///
/// All warps store to the first lanes: the address is the same for all.
///
/// PTX ISA: tcgen05.ld, "Access restrictions".
struct lanes_of_another_warp : TensorMemoryKernel {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    TensorAddr const base = begin(smem);
    std::uint32_t const zero[1] = {0};
    tcgen05_st<TensorShape::lanes32_bits32, 1>(zero, p.repaired ? own(base) : base);
    tcgen05_wait_st();
    end(base);
  }
};

// Report:
//   11_tensor_memory/lanes_of_another_warp.hpp:16: kernel lanes_of_another_warp, CTA (0, 0, 0),
//     warp 3: tensor_memory_misuse: tcgen05.st of lanes 0 to 31 of tensor memory by warp 3, which
//     reaches lanes 96 to 127 only: add them, 32 times the warp's index in its warpgroup, to bits
//     16 and up of the address (3 times in all)

}  // namespace tegula::broken
