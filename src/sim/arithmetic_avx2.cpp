#include "arithmetic_lanes.hpp"

namespace tegula::sim::detail {

#if defined(__AVX2__)
void reduce_tile_avx2(DotTile& tile, int first_k, int k, int fraction_bits, SumRounding rounding) {
  reduce_tile<8>(tile, first_k, k, fraction_bits, rounding);
}
#else
void reduce_tile_avx2(DotTile& tile, int first_k, int k, int fraction_bits, SumRounding rounding) {
  reduce_tile_portable(tile, first_k, k, fraction_bits, rounding);
}
#endif

}  // namespace tegula::sim::detail
