#pragma once

#include "../scaled_kernel.hpp"

namespace tegula::broken {

/// Each quarter of the lanes has a copy of the scales.
///
/// A copy of 128 rows gives each quarter others.
///
/// PTX ISA: tcgen05.mma, "Block Scaling".
struct scales_not_repeated : ScaledKernel {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    TensorAddr const base = begin(smem);
    SharedAddr const done = shared_address(&smem.done);
    if (thread_idx() == 0) {
      if (p.repaired) {
        copy(smem, base + of_a);
      } else {
        copy<TensorCopyShape::rows128_bits128>(smem, base + of_a);
      }
      copy(smem, base + of_b);
      multiply(smem, base);
      tcgen05_commit(done);
      mbarrier_wait_parity(done, 0);
    }
    end(base);
  }
};

// Report:
//   11_tensor_memory/scales_not_repeated.hpp:23: kernel scales_not_repeated, CTA (0, 0, 0), warp 0,
//     lane 0: invalid_operand: tcgen05.mma with scales of A of which lane 32, column 16 of tmem has
//     0x80 for row 0, and lane 0 0x7f: the four quarters of the lanes must have the same, as a
//     tcgen05.cp.32x128b.warpx4 writes them

}  // namespace tegula::broken
