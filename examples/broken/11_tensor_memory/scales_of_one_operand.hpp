#pragma once

#include "../scaled_kernel.hpp"

namespace tegula::broken {

/// Both operands of a product have scales in tensor memory.
///
/// Those of B are not copied there.
///
/// PTX ISA: tcgen05.mma, "Block Scaling".
struct scales_of_one_operand : ScaledKernel {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    TensorAddr const base = begin(smem);
    SharedAddr const done = shared_address(&smem.done);
    if (thread_idx() == 0) {
      copy(smem, base + of_a);
      if (p.repaired) copy(smem, base + of_b);
      multiply(smem, base);
      tcgen05_commit(done);
      mbarrier_wait_parity(done, 0);
    }
    end(base);
  }
};

// Report:
//   11_tensor_memory/scales_of_one_operand.hpp:19: kernel scales_of_one_operand, CTA (0, 0, 0),
//     warp 0, lane 0: uninitialized_read: tcgen05.mma reads lane 0, column 20 of tmem, which nobody
//     has written

}  // namespace tegula::broken
