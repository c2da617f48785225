#pragma once

#include <cstdint>
#include <initializer_list>
#include <tegula/numeric/narrow.hpp>

namespace tegula {

/// OCP 8-bit E4M3, PTX .e4m3: no infinity, one NaN (0x7f, 0xff), largest finite value 448.
struct float_e4m3 {
  std::uint8_t bits;

  float_e4m3() = default;
  TEGULA_HOST_DEVICE constexpr float_e4m3(std::initializer_list<std::uint8_t> bits)
      : bits(detail::only(bits)) {}

  TEGULA_HOST_DEVICE constexpr explicit operator float() const {
    return detail::bits_float((bits & 0x7f) == 0x7f ? 0x7fffffffu
                                                    : detail::widen<kE4m3Format, false>(bits));
  }
};

/// OCP 8-bit E5M2, PTX .e5m2: infinities and NaNs as IEEE, largest finite value 57344.
struct float_e5m2 {
  std::uint8_t bits;

  float_e5m2() = default;
  TEGULA_HOST_DEVICE constexpr float_e5m2(std::initializer_list<std::uint8_t> bits)
      : bits(detail::only(bits)) {}

  TEGULA_HOST_DEVICE constexpr explicit operator float() const {
    return detail::bits_float(detail::widen<kE5m2Format, true>(bits));
  }
};

/// PTX cvt.rn.satfinite.e4m3x2.f32, one element: overflow and infinity to +-448, NaN to 0x7f.
TEGULA_HOST_DEVICE constexpr float_e4m3 to_float_e4m3(float x) {
  return float_e4m3{static_cast<std::uint8_t>(
      detail::narrow<kE4m3Format, Rounding::kNearestEven, Overflow::kSaturate>(
          detail::float_bits(x)))};
}

/// PTX cvt.rn.satfinite.e5m2x2.f32, one element: overflow and infinity to +-57344, NaN to 0x7f.
TEGULA_HOST_DEVICE constexpr float_e5m2 to_float_e5m2(float x) {
  return float_e5m2{static_cast<std::uint8_t>(
      detail::narrow<kE5m2Format, Rounding::kNearestEven, Overflow::kSaturate>(
          detail::float_bits(x)))};
}

TEGULA_HOST_DEVICE constexpr float to_float(float_e4m3 x) { return static_cast<float>(x); }
TEGULA_HOST_DEVICE constexpr float to_float(float_e5m2 x) { return static_cast<float>(x); }

/// An e4m3x2 or e5m2x2 half register: lo in bits 0-7.
TEGULA_HOST_DEVICE constexpr std::uint16_t pack(float_e4m3 lo, float_e4m3 hi) {
  return static_cast<std::uint16_t>(lo.bits | (hi.bits << 8));
}
TEGULA_HOST_DEVICE constexpr std::uint16_t pack(float_e5m2 lo, float_e5m2 hi) {
  return static_cast<std::uint16_t>(lo.bits | (hi.bits << 8));
}

}  // namespace tegula
