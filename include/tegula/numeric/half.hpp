#pragma once

#include <cstdint>
#include <initializer_list>
#include <tegula/numeric/narrow.hpp>

namespace tegula {

/// IEEE binary16, PTX .f16: the bits, and nothing else. NaN from a conversion is 0x7fff.
struct half {
  std::uint16_t bits;

  half() = default;
  TEGULA_HOST_DEVICE constexpr half(std::initializer_list<std::uint16_t> bits)
      : bits(detail::only(bits)) {}

  TEGULA_HOST_DEVICE constexpr explicit operator float() const {
    return detail::bits_float(detail::widen<kHalfFormat, true>(bits));
  }
};

/// binary32 to binary16; PTX cvt.{rn,rz}.f16.f32.
template <Rounding R = Rounding::kNearestEven> TEGULA_HOST_DEVICE constexpr half to_half(float x) {
  return half{static_cast<std::uint16_t>(
      detail::narrow<kHalfFormat, R, Overflow::kInfinity>(detail::float_bits(x)))};
}

/// Exact; PTX cvt.f32.f16.
TEGULA_HOST_DEVICE constexpr float to_float(half x) { return static_cast<float>(x); }

/// A .f16x2 register: lo in bits 0-15.
TEGULA_HOST_DEVICE constexpr std::uint32_t pack(half lo, half hi) {
  return lo.bits | (static_cast<std::uint32_t>(hi.bits) << 16);
}

}  // namespace tegula
