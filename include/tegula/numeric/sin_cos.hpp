#pragma once

#include <cstdint>
#include <tegula/numeric/rounded_arithmetic.hpp>

namespace tegula {

struct SinCos {
  float sin, cos;
};

/// Sine and cosine of x, in radians, from rounded multiplications and fma alone, so that a GPU, the
/// simulated machine and host code give the same bits. Requires |x| <= 2^30, far beyond the angles
/// of rotary embeddings at any position; of what is larger, of infinities and NaN both are NaN.
///
/// At most 1.5 ulp from exact (tests/numeric/elementary_test.cpp), also where the result is small.
/// Some 35 GPU instructions, seven of them on f64, of which an H100 has half as many units as of
/// f32 and other GPUs have few.
///
/// Method: x = n pi/2 + r, |r| <= pi/4, in f64: pi/2 is in two parts of 53 bits, so that r is good
/// to 2^-50 of itself where x is next to a multiple of pi/2, too. Then r is rounded to f32, and
/// sin(r) = r + r^3 S(r^2), cos(r) = 1 - r^2/2 + r^4 C(r^2), of degree 3 and 2 in r^2, with
/// relative errors of 1.7e-10.
TEGULA_HOST_DEVICE SinCos sin_cos_polynomial(float x) {
  constexpr double kMagic =
      6755399441055744.0;  // 1.5 * 2^52: a sum with it is rounded to an integer
  constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;
  constexpr double kHalfPi = 0x1.921fb54442d18p+0, kHalfPiRest = 0x1.1a62633145c07p-54;
  if (!(abs_f32(x) <= 0x1p30f)) {
    float const nan = __builtin_bit_cast(float, 0x7fffffffu);
    return {nan, nan};
  }
  double const wide = x;
  double const shifted = fma_rn(wide, kTwoOverPi, kMagic);
  double const n = sub_rn(shifted, kMagic);
  double const reduced = fma_rn(n, -kHalfPiRest, fma_rn(n, -kHalfPi, wide));
  float const r = static_cast<float>(reduced);
  float const square = mul_rn(r, r);
  float s = fma_rn(0x1.7c3068p-19f, square, -0x1.a0595ap-13f);
  s = fma_rn(s, square, 0x1.111174p-7f);
  s = fma_rn(s, square, -0x1.555556p-3f);
  s = r == 0.0f ? r : fma_rn(mul_rn(s, square), r, r);  // the fma would lose the sign of -0
  float c = fma_rn(0x1.99e816p-16f, square, -0x1.6c0c28p-10f);
  c = fma_rn(c, square, 0x1.55554ap-5f);
  c = fma_rn(c, square, -0.5f);
  c = fma_rn(c, square, 1.0f);
  // A quarter turn for each n: (sin, cos), (cos, -sin), (-sin, -cos), (-cos, sin).
  auto const quarter = static_cast<std::uint32_t>(__builtin_bit_cast(std::uint64_t, shifted) & 3);
  float const sin = (quarter & 1) != 0 ? c : s;
  float const cos = (quarter & 1) != 0 ? s : c;
  return {(quarter & 2) != 0 ? -sin : sin, ((quarter + 1) & 2) != 0 ? -cos : cos};
}

}  // namespace tegula
