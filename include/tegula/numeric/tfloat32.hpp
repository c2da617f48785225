#pragma once

#include <cstdint>
#include <tegula/numeric/narrow.hpp>

namespace tegula {

/// PTX .tf32: binary32's sign and exponent, 10 mantissa bits, held in the upper 19 bits of a 32-bit register.
/// A tensor core reads only those 19 bits, so any binary32 register is a valid operand, truncated.
struct tfloat32 {
  std::uint32_t bits;

  TEGULA_HOST_DEVICE constexpr explicit operator float() const {
    return detail::bits_float(bits & 0xffffe000u);
  }
};

/// binary32 to tf32. Toward zero by default: what a tensor core does to a binary32 register it is handed (a
/// NaN whose payload lies only in the dropped bits stays a NaN here). kNearestEven and kNearestAway are PTX
/// cvt.{rn,rna}.tf32.f32.
template <Rounding R = Rounding::kTowardZero> TEGULA_HOST_DEVICE constexpr tfloat32 to_tfloat32(float x) {
  return tfloat32{detail::narrow<kTfloat32Format, R, Overflow::kInfinity>(detail::float_bits(x)) << 13};
}

TEGULA_HOST_DEVICE constexpr float to_float(tfloat32 x) { return static_cast<float>(x); }

}  // namespace tegula
