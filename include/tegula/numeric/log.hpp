#pragma once

#include <cstdint>
#include <tegula/numeric/rounded_arithmetic.hpp>

namespace tegula {

/// The natural logarithm from rounded multiplications and fma alone, so that a GPU, the simulated
/// machine and host code give the same bits. Of every x, subnormal ones too: -infinity of zeros,
/// NaN of what is less, infinity of infinity.
///
/// At most 1.0 ulp from exact (tests/numeric/elementary_test.cpp). Some twenty GPU instructions.
///
/// Method: x = 2^e (1 + f) with 1 + f in [2/3, 4/3), both exact; log(1 + f) = f + f^2 P(f), P of
/// degree 8, whose relative error is 4.7e-9.
TEGULA_HOST_DEVICE float log_polynomial(float x) {
  constexpr float kLn2 = 0x1.62e43p-1f;
  constexpr std::uint32_t kTwoThirds = 0x3f2aaaabu;  // the bits of the float
  constexpr std::uint32_t kInfinity = 0x7f800000u;
  bool const tiny = x < 0x1p-126f;
  std::uint32_t const bits = __builtin_bit_cast(std::uint32_t, tiny ? mul_rn(x, 0x1p23f) : x);
  std::uint32_t const exponent = (bits - kTwoThirds) & 0xff800000u;
  float const e =
      static_cast<float>(static_cast<std::int32_t>(exponent) / (1 << 23) - (tiny ? 23 : 0));
  float const f = sub_rn(__builtin_bit_cast(float, bits - exponent), 1.0f);
  float p = fma_rn(-0x1.07a942p-3f, f, 0x1.1e72a0p-3f);
  p = fma_rn(p, f, -0x1.f33cccp-4f);
  p = fma_rn(p, f, 0x1.1ed452p-3f);
  p = fma_rn(p, f, -0x1.559c2cp-3f);
  p = fma_rn(p, f, 0x1.99d05cp-3f);
  p = fma_rn(p, f, -0x1.fffefap-3f);
  p = fma_rn(p, f, 0x1.555506p-2f);
  p = fma_rn(p, f, -0.5f);
  p = fma_rn(mul_rn(p, f), f, f);
  float const result = fma_rn(e, kLn2, p);
  if (x > 0.0f && __builtin_bit_cast(std::uint32_t, x) < kInfinity) return result;
  // Zero, infinity, and what has no logarithm.
  if (x == 0.0f) return __builtin_bit_cast(float, kInfinity | 0x80000000u);
  return x > 0.0f ? x : __builtin_bit_cast(float, 0x7fffffffu);
}

}  // namespace tegula
