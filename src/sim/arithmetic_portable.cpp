#include "arithmetic_lanes.hpp"
#include "arithmetic_wgmma_lanes.hpp"

namespace tegula::sim::detail {

void reduce_tile_portable(DotTile& tile, int first_k, int k, int fraction_bits, SumRounding rounding) {
  reduce_tile<4>(tile, first_k, k, fraction_bits, rounding);
}

bool sum_wgmma_row_portable(WgmmaTile const& tile, WgmmaFamily family, int row, int n, WgmmaRow& out) {
  return sum_wgmma_row<4>(tile, family, row, n, out);
}

void sum_wgmma_integers_portable(WgmmaTile const& tile, int row, int n, std::int32_t* sums) {
  sum_wgmma_integers<4>(tile, row, n, sums);
}

}  // namespace tegula::sim::detail
