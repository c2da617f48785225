#include "arithmetic_lanes.hpp"

namespace tegula::sim::detail {

void reduce_tile_portable(DotTile& tile, int first_k, int k, int fraction_bits, SumRounding rounding) {
  reduce_tile<4>(tile, first_k, k, fraction_bits, rounding);
}

}  // namespace tegula::sim::detail
