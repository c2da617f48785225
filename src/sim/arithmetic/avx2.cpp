#include "arithmetic/lanes.hpp"
#include "arithmetic/wgmma_decode.hpp"

namespace tegula::sim::detail {

#if defined(__AVX2__)
inline constexpr int kLanes = 8;
#else
inline constexpr int kLanes = 4;
#endif

void reduce_tile_avx2(DotTile& tile, int first_k, int k, int fraction_bits, SumRounding rounding) {
  reduce_tile<kLanes>(tile, first_k, k, fraction_bits, rounding);
}

WgmmaFunctions const kWgmmaAvx2 = kWgmmaFunctions<kLanes>;

}  // namespace tegula::sim::detail
