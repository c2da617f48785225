#pragma once

#include "../tensor_memory_kernel.hpp"

namespace tegula::broken {

/// Who frees tensor memory comes after all who use it.
///
/// Warp 0 does not wait for the others' loads.
///
/// PTX ISA: tcgen05.dealloc.
struct freed_while_loaded : TensorMemoryKernel {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    TensorAddr const base = begin(smem);
    std::uint32_t r[1] = {0};
    tcgen05_st<TensorShape::lanes32_bits32, 1>(r, own(base));
    tcgen05_wait_st();
    if (p.repaired) cta::sync();
    if (warp_id() == 0) tcgen05_dealloc<32>(base);
  }
};

// Report:
//   11_tensor_memory/freed_while_loaded.hpp:19: kernel freed_while_loaded, CTA (0, 0, 0), warp 0:
//     data_race: tcgen05.dealloc of columns 0 to 31 of tensor memory, and nothing orders it after
//     the tcgen05.st by warp 3 (11_tensor_memory/freed_while_loaded.hpp:16): a barrier between the
//     two would order them
//   11_tensor_memory/freed_while_loaded.hpp:16: kernel freed_while_loaded, CTA (0, 0, 0), warp 1:
//     out_of_bounds: tcgen05.st touches columns 0 to 0 of tensor memory, which were allocated
//     (broken/tensor_memory_kernel.hpp:67) and have been freed (2 times in all)

}  // namespace tegula::broken
