#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// A launch reads every element of its input, unless it can do without.
///
/// The sum of a row of 50 goes by steps of 32, whole ones. The rows are 64 apart; what lies between
/// them is no element, and nobody need read it.
struct rest_of_the_row : Kernel<32> {
  static constexpr int rows = 16, columns = 50;

  static std::vector<sim::GlobalTensor> tensors(Params const& p) {
    Layout const layout = tegula::layout(tuple(rows, columns), tuple(64, 1));
    return {sim::global_tensor("in", p.in, layout, {"row", "column"}, sim::Coverage::read)};
  }

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage&) const {
    int const end = p.repaired ? columns : columns / 32 * 32;
    for (int row = 0; row < rows; ++row) {
      int sum = 0;
      for (int column = lane_id(); column < end; column += 32)
        sum += static_cast<int>(ld_global<float>(p.in + 64 * row + column));
      sum = warp::reduce_add(sum);
      if (lane_id() == 0) st_global(p.out + row, static_cast<float>(sum));
    }
  }
};

// Report:
//   kernel rest_of_the_row: unread_input: nobody reads row 0, column 32 of in, nor 287 others of
//     its 800 elements: the launch is to read them all; row 0, column 31, beside it, ld.global of
//     CTA (0, 0, 0), warp 0 reads (01_memory/rest_of_the_row.hpp:24)

}  // namespace tegula::broken
