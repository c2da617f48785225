#include "arithmetic_lanes.hpp"
#include "arithmetic_wgmma_lanes.hpp"

namespace tegula::sim::detail {

#if defined(__AVX2__)
inline constexpr int kLanes = 8;
#else
inline constexpr int kLanes = 4;
#endif

void reduce_tile_avx2(DotTile& tile, int first_k, int k, int fraction_bits, SumRounding rounding) {
  reduce_tile<kLanes>(tile, first_k, k, fraction_bits, rounding);
}

bool sum_wgmma_row_avx2(WgmmaTile const& tile, WgmmaFamily family, int row, int n, WgmmaRow& out) {
  return sum_wgmma_row<kLanes>(tile, family, row, n, out);
}

void sum_wgmma_integers_avx2(WgmmaTile const& tile, int row, int n, std::int32_t* sums) {
  sum_wgmma_integers<kLanes>(tile, row, n, sums);
}

}  // namespace tegula::sim::detail
