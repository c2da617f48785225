#pragma once

#include <cstdint>
#include <initializer_list>
#include <tegula/numeric/narrow.hpp>

namespace tegula {

/// OCP 6-bit E3M2, PTX .e3m2, in the low 6 bits: neither infinity nor NaN, largest value 28.
struct float_e3m2 {
  std::uint8_t bits;

  float_e3m2() = default;
  TEGULA_HOST_DEVICE constexpr float_e3m2(std::initializer_list<std::uint8_t> bits)
      : bits(detail::only(bits)) {}

  TEGULA_HOST_DEVICE constexpr explicit operator float() const {
    return detail::bits_float(detail::widen<kE3m2Format, false>(bits & 0x3fu));
  }
};

/// OCP 6-bit E2M3, PTX .e2m3, in the low 6 bits: neither infinity nor NaN, largest value 7.5.
struct float_e2m3 {
  std::uint8_t bits;

  float_e2m3() = default;
  TEGULA_HOST_DEVICE constexpr float_e2m3(std::initializer_list<std::uint8_t> bits)
      : bits(detail::only(bits)) {}

  TEGULA_HOST_DEVICE constexpr explicit operator float() const {
    return detail::bits_float(detail::widen<kE2m3Format, false>(bits & 0x3fu));
  }
};

/// PTX cvt.rn.satfinite.e3m2x2.f32, one element: overflow and infinity to +-28, NaN to +28.
TEGULA_HOST_DEVICE constexpr float_e3m2 to_float_e3m2(float x) {
  return float_e3m2{static_cast<std::uint8_t>(
      detail::narrow<kE3m2Format, Rounding::kNearestEven, Overflow::kSaturate>(
          detail::float_bits(x)))};
}

/// PTX cvt.rn.satfinite.e2m3x2.f32, one element: overflow and infinity to +-7.5, NaN to +7.5.
TEGULA_HOST_DEVICE constexpr float_e2m3 to_float_e2m3(float x) {
  return float_e2m3{static_cast<std::uint8_t>(
      detail::narrow<kE2m3Format, Rounding::kNearestEven, Overflow::kSaturate>(
          detail::float_bits(x)))};
}

TEGULA_HOST_DEVICE constexpr float to_float(float_e3m2 x) { return static_cast<float>(x); }
TEGULA_HOST_DEVICE constexpr float to_float(float_e2m3 x) { return static_cast<float>(x); }

}  // namespace tegula
