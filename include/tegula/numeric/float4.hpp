#pragma once

#include <cstdint>
#include <initializer_list>
#include <tegula/numeric/narrow.hpp>

namespace tegula {

/// OCP 4-bit E2M1, PTX .e2m1, in the low 4 bits: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives;
/// neither infinity nor NaN.
struct float_e2m1 {
  std::uint8_t bits;

  float_e2m1() = default;
  TEGULA_HOST_DEVICE constexpr float_e2m1(std::initializer_list<std::uint8_t> bits)
      : bits(detail::only(bits)) {}

  TEGULA_HOST_DEVICE constexpr explicit operator float() const {
    return detail::bits_float(detail::widen<kE2m1Format, false>(bits & 0xfu));
  }
};

/// PTX cvt.rn.satfinite.e2m1x2.f32, one element: overflow and infinity to +-6, NaN to +6.
TEGULA_HOST_DEVICE constexpr float_e2m1 to_float_e2m1(float x) {
  return float_e2m1{static_cast<std::uint8_t>(
      detail::narrow<kE2m1Format, Rounding::kNearestEven, Overflow::kSaturate>(
          detail::float_bits(x)))};
}

TEGULA_HOST_DEVICE constexpr float to_float(float_e2m1 x) { return static_cast<float>(x); }

/// An e2m1x2 byte: lo in bits 0-3.
TEGULA_HOST_DEVICE constexpr std::uint8_t pack(float_e2m1 lo, float_e2m1 hi) {
  return static_cast<std::uint8_t>((lo.bits & 0xf) | (hi.bits << 4));
}

/// PTX .e2m1x2, two neighbours of a tensor in a byte, the first in bits 0-3. What addresses e2m1 in
/// memory addresses such pairs: tensors, tiles and TMA count them as elements of a byte.
struct float_e2m1x2 {
  std::uint8_t bits;

  float_e2m1x2() = default;
  TEGULA_HOST_DEVICE constexpr float_e2m1x2(std::initializer_list<std::uint8_t> bits)
      : bits(detail::only(bits)) {}

  TEGULA_HOST_DEVICE constexpr float_e2m1 operator[](int i) const {
    return float_e2m1{static_cast<std::uint8_t>(bits >> 4 * i & 0xf)};
  }
};

}  // namespace tegula
