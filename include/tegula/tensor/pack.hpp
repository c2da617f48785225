#pragma once

#include <cstdint>
#include <type_traits>

#include "tegula/arch/math.hpp"
#include "tegula/numeric/bfloat16.hpp"
#include "tegula/numeric/half.hpp"

namespace tegula {

/// Two values rounded to T (half or bfloat16), to nearest even, in one register: the first in its low half.
template <class T> TEGULA_DEVICE std::uint32_t pack_pair(float low, float high) {
  static_assert(std::is_same_v<T, half> || std::is_same_v<T, bfloat16>);
  if constexpr (std::is_same_v<T, bfloat16>) {
    return cvt_rn_bf16x2(high, low);
  } else {
    return cvt_rn_f16x2(high, low);
  }
}

}  // namespace tegula
