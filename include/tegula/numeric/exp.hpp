#pragma once

#include <cstdint>
#include <tegula/numeric/rounded_arithmetic.hpp>

namespace tegula {

/// e^x from rounded additions, multiplications and fma alone, so that a GPU, the simulated machine
/// and host code give the same bits. Of every x: subnormal results are rounded, not flushed; what
/// exceeds the greatest f32 is infinity; NaN gives NaN.
///
/// At most 0.90 ulp from exact (tests/numeric/elementary_test.cpp). Some twenty GPU instructions;
/// exp2_polynomial takes eleven, and flushes.
///
/// Method: x = n ln 2 + r, |r| <= ln 2 / 2, with ln 2 in two parts, the first of which n times is
/// exact within fma (Cody and Waite 1980). e^r = 1 + r + r^2 P(r), P of degree 4, whose relative
/// error is 3.2e-9. 2^n is multiplied in two steps, so that only the last one rounds.
TEGULA_HOST_DEVICE float exp_polynomial(float x) {
  constexpr float kMagic = 12582912.0f;  // 1.5 * 2^23: a sum with it is rounded to an integer
  constexpr float kLog2E = 1.44269502f;
  constexpr float kLn2 = 0x1.62e43p-1f, kLn2Rest = -0x1.05c61p-29f;
  float y = x < -104.0f ? -104.0f : x;  // NaN stays
  y = y > 89.0f ? 89.0f : y;
  float const shifted = fma_rn(y, kLog2E, kMagic);
  float const n = sub_rn(shifted, kMagic);
  float r = fma_rn(n, -kLn2, y);
  r = fma_rn(n, -kLn2Rest, r);
  float p = fma_rn(0x1.6a4112p-10f, r, 0x1.1239c0p-7f);
  p = fma_rn(p, r, 0x1.5558bcp-5f);
  p = fma_rn(p, r, 0x1.555492p-3f);
  p = fma_rn(p, r, 0x1.fffffcp-2f);
  p = fma_rn(p, r, 1.0f);
  p = fma_rn(p, r, 1.0f);
  // n, -151 to 128, as two numbers that are exponents of normal floats.
  std::int32_t const whole = static_cast<std::int32_t>(__builtin_bit_cast(std::uint32_t, shifted) -
                                                       __builtin_bit_cast(std::uint32_t, kMagic));
  std::int32_t const half = whole >> 1;
  auto const power = [](std::int32_t exponent) {
    return __builtin_bit_cast(float, static_cast<std::uint32_t>(exponent + 127) << 23);
  };
  return mul_rn(mul_rn(p, power(half)), power(whole - half));
}

}  // namespace tegula
