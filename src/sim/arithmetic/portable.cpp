#include "arithmetic/lanes.hpp"
#include "arithmetic/wgmma_decode.hpp"

namespace tegula::sim::detail {

void reduce_tile_portable(DotTile& tile, int first_k, int k, int fraction_bits,
                          SumRounding rounding) {
  reduce_tile<4>(tile, first_k, k, fraction_bits, rounding);
}

WgmmaFunctions const kWgmmaPortable = kWgmmaFunctions<4>;

}  // namespace tegula::sim::detail
