#pragma once

#include <cstdint>
#include <initializer_list>
#include <tegula/numeric/narrow.hpp>

namespace tegula {

/// bfloat16, PTX .bf16: the upper half of a binary32. NaN from a conversion is 0x7fff.
struct bfloat16 {
  std::uint16_t bits;

  bfloat16() = default;
  TEGULA_HOST_DEVICE constexpr bfloat16(std::initializer_list<std::uint16_t> bits)
      : bits(detail::only(bits)) {}

  /// Exact, NaN payload kept (a shift, as compilers emit for a GPU).
  TEGULA_HOST_DEVICE constexpr explicit operator float() const {
    return detail::bits_float(static_cast<std::uint32_t>(bits) << 16);
  }
};

/// binary32 to bfloat16; PTX cvt.{rn,rz}.bf16.f32.
template <Rounding R = Rounding::kNearestEven>
TEGULA_HOST_DEVICE constexpr bfloat16 to_bfloat16(float x) {
  return bfloat16{static_cast<std::uint16_t>(
      detail::narrow<kBfloat16Format, R, Overflow::kInfinity>(detail::float_bits(x)))};
}

TEGULA_HOST_DEVICE constexpr float to_float(bfloat16 x) { return static_cast<float>(x); }

/// A .bf16x2 register: lo in bits 0-15.
TEGULA_HOST_DEVICE constexpr std::uint32_t pack(bfloat16 lo, bfloat16 hi) {
  return lo.bits | (static_cast<std::uint32_t>(hi.bits) << 16);
}

}  // namespace tegula
