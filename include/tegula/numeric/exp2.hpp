#pragma once

#include <cstdint>
#include <tegula/macros.hpp>

namespace tegula {

/// 2^x from additions, multiplications and fma alone, so that a GPU and the simulated machine give
/// the same bits.
///
/// Requires x <= 127 or x NaN; made for the exponentials of a softmax, whose arguments are not
/// positive. At most 1.02 ulp from exact (proved over every mantissa by
/// tests/numeric/exp2_test.cpp); exactly 2^x for integer x. A result below 2^-126 is flushed to +0,
/// as ex2.approx.ftz does; -inf gives +0; NaN gives NaN.
///
/// Method: x = n + f with n the nearest integer and |f| <= 1/2, both exact (Cody and Waite 1980);
/// adding 1.5 * 2^23 + 127 leaves n + 127, the biased exponent of 2^n, in the low bits of the sum.
/// 2^f is a polynomial of degree 6 whose constant term is held at 1 and whose other coefficients
/// minimise the largest relative error (2.6e-9, by Remez exchange). Eleven GPU instructions.
TEGULA_HOST_DEVICE float exp2_polynomial(float x) {
  constexpr float kMagic = 12582912.0f + 127.0f;  // 1.5 * 2^23 + exponent bias
  constexpr float kC1 = 0.69314721496788496f;
  constexpr float kC2 = 0.24022652782876177f;
  constexpr float kC3 = 0.055503105512069806f;
  constexpr float kC4 = 0.0096176929761431872f;
  constexpr float kC5 = 0.001340664384748006f;
  constexpr float kC6 = 0.00015594677015105411f;

#if defined(__CUDA_ARCH__)
  asm("max.NaN.f32 %0, %0, 0fC2FE0000;" : "+f"(x));  // max(x, -127), NaN kept
  float const shifted = __fadd_rn(x, kMagic);
  float const f = __fadd_rn(x, -__fadd_rn(shifted, -kMagic));
  float p = __fmaf_rn(kC6, f, kC5);
  p = __fmaf_rn(p, f, kC4);
  p = __fmaf_rn(p, f, kC3);
  p = __fmaf_rn(p, f, kC2);
  p = __fmaf_rn(p, f, kC1);
  p = __fmaf_rn(p, f, 1.0f);
  float const power = __uint_as_float(__float_as_uint(shifted) << 23);  // 2^n, and 0 for n = -127
  float result;
  asm("mul.rn.ftz.f32 %0, %1, %2;" : "=f"(result) : "f"(p), "f"(power));
  return result;
#else
  if (x < -127.0f) x = -127.0f;
  float const shifted = x + kMagic;
  float const f = x - (shifted - kMagic);
  float p = __builtin_fmaf(kC6, f, kC5);
  p = __builtin_fmaf(p, f, kC4);
  p = __builtin_fmaf(p, f, kC3);
  p = __builtin_fmaf(p, f, kC2);
  p = __builtin_fmaf(p, f, kC1);
  p = __builtin_fmaf(p, f, 1.0f);
  // 2^n, and 0 for n = -127
  float const power = __builtin_bit_cast(float, __builtin_bit_cast(std::uint32_t, shifted) << 23);
  float const result = p * power;
  return __builtin_fabsf(result) < 0x1p-126f ? result * 0.0f : result;  // flushed, as .ftz does
#endif
}

}  // namespace tegula
