#pragma once

#include <cstdint>
#include <initializer_list>
#include <tegula/numeric/narrow.hpp>

namespace tegula {

/// PTX .tf32: binary32's sign and exponent, 10 mantissa bits, held in the upper 19 bits of a
/// 32-bit register. A tensor core reads only those 19 bits, so any binary32 register is a valid
/// operand, truncated.
struct tfloat32 {
  std::uint32_t bits;

  tfloat32() = default;
  TEGULA_HOST_DEVICE constexpr tfloat32(std::initializer_list<std::uint32_t> bits)
      : bits(detail::only(bits)) {}

  TEGULA_HOST_DEVICE constexpr explicit operator float() const {
    return detail::bits_float(bits & 0xffffe000u);
  }
};

/// binary32 to tf32. kNearestEven and kTowardZero are PTX cvt.{rn,rz}.tf32.f32: a NaN becomes
/// 0x7fffe000. kNearestAway is cvt.rna.tf32.f32, which cuts a NaN's payload like a number's, so
/// that a NaN whose payload lies in the 13 dropped bits becomes an infinity (as on an H100; also
/// what a tensor core makes of a register that it is handed unconverted).
template <Rounding R = Rounding::kTowardZero>
TEGULA_HOST_DEVICE constexpr tfloat32 to_tfloat32(float x) {
  std::uint32_t const word = detail::float_bits(x);
  if constexpr (R == Rounding::kNearestAway) {
    if ((word & 0x7fffffffu) > 0x7f800000u) return tfloat32{word & 0xffffe000u};
  }
  return tfloat32{detail::narrow<kTfloat32Format, R, Overflow::kInfinity>(word) << 13};
}

TEGULA_HOST_DEVICE constexpr float to_float(tfloat32 x) { return static_cast<float>(x); }

}  // namespace tegula
