#pragma once

#include "../stationary_kernel.hpp"

namespace tegula::broken {

/// Of zero columns each part begins within a run.
///
/// The second part is told to leave out the first four columns of a run of four: what it begins
/// with then nobody says.
///
/// PTX ISA: zero-column mask descriptor.
struct zero_columns_beyond_the_run : StationaryKernel {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    TensorAddr const base = begin(smem);
    if (thread_idx() == 0) {
      ZeroColumns const columns = {
          .used = 4, .zeros = 3, .part = {{.start = 0}, {.start = p.repaired ? 3 : 4}}};
      tcgen05_mma<op>(base, of_a(smem), of_b(smem), false, columns);
      commit_and_wait(smem, 0);
    }
    end(base);
  }
};

// Report:
//   11_tensor_memory/zero_columns_beyond_the_run.hpp:19: kernel zero_columns_beyond_the_run, CTA
//     (0, 0, 0), warp 0, lane 0: invalid_operand: the zero-column mask 0x0003028000000400: part 1
//     leaves out 4 columns of a run of 4

}  // namespace tegula::broken
