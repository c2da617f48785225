#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// Shared memory holds nothing until somebody writes it.
///
/// The loop that fills the tile stops a row too early, and the sum takes what the CTA before left
/// there. It is read as a NaN here.
struct uninitialized_read : Kernel<32> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    int const rows = p.repaired ? 8 : 7;
    for (int row = 0; row < rows; ++row) {
      st_shared(at(smem, row, lane_id()), ld_global<float>(p.in + 32 * row + lane_id()));
    }
    float sum = 0;
    for (int row = 0; row < 8; ++row) sum += ld_shared<float>(at(smem, row, lane_id()));
    st_global(p.out + lane_id(), sum);
  }
};

// Report:
//   01_memory/uninitialized_read.hpp:18: kernel uninitialized_read, CTA (0, 0, 0), warp 0, lane 0:
//     uninitialized_read: ld.shared reads row 7, column 0 of stage 0 of tile, which nobody has
//     written (32 times in all)

}  // namespace tegula::broken
