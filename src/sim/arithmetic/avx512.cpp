#include "arithmetic/wgmma_decode.hpp"

namespace tegula::sim::detail {

#if defined(__AVX512BW__)
inline constexpr int kLanes = 16;
#else
inline constexpr int kLanes = 4;
#endif

WgmmaFunctions const kWgmmaAvx512 = kWgmmaFunctions<kLanes>;

}  // namespace tegula::sim::detail
