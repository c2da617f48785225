#pragma once

#include <cstdint>
#include <type_traits>

#include "tegula/macros.hpp"
#include "tegula/numeric/float8.hpp"

namespace tegula {

/// A float as fp8 of type T, rounded to nearest even; beyond the largest finite value that value,
/// NaN 0x7f: PTX ISA, cvt.rn.satfinite.e4m3x2.f32 and .e5m2x2 (sm_89).
template <class T> TEGULA_DEVICE T cvt_rn_satfinite(float x) {
  static_assert(std::is_same_v<T, float_e4m3> || std::is_same_v<T, float_e5m2>);
#if TEGULA_GPU
  std::uint16_t pair;
  if constexpr (std::is_same_v<T, float_e4m3>) {
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(x));
  } else {
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(x));
  }
  return T{static_cast<std::uint8_t>(pair)};
#else
  if constexpr (std::is_same_v<T, float_e4m3>) {
    return to_float_e4m3(x);
  } else {
    return to_float_e5m2(x);
  }
#endif
}

}  // namespace tegula
