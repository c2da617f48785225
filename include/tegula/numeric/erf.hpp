#pragma once

#include <cstdint>
#include <tegula/numeric/exp2.hpp>
#include <tegula/numeric/rounded_arithmetic.hpp>

namespace tegula {

/// The error function from rounded additions, multiplications and fma alone, so that a GPU, the
/// simulated machine and host code give the same bits. Of every x: -1 and 1 of infinities, NaN of
/// NaN; the sign is x's.
///
/// At most 1.15 ulp from exact (tests/numeric/elementary_test.cpp). Some 35 GPU instructions: both
/// forms are computed, as the lanes of a warp seldom agree on one.
///
/// Method: below 1, t + t P(t^2), P of degree 6, whose relative error is 1.5e-9. From 1 on, 1 -
/// 2^Q(t), where Q, of degree 6, is log2 of the complement: 1.1e-9 of the result. From 4 on the
/// result is 1.
TEGULA_HOST_DEVICE float erf_polynomial(float x) {
  float const magnitude = abs_f32(x);
  float const t = magnitude > 4.0f ? 4.0f : magnitude;  // NaN stays
  float const square = mul_rn(t, t);
  float p = fma_rn(0x1.4771fep-14f, square, -0x1.a3515ep-11f);
  p = fma_rn(p, square, 0x1.53f224p-8f);
  p = fma_rn(p, square, -0x1.b7f71ap-6f);
  p = fma_rn(p, square, 0x1.ce2ce6p-4f);
  p = fma_rn(p, square, -0x1.81273ep-2f);
  p = fma_rn(p, square, 0x1.06eba8p-3f);
  p = fma_rn(p, t, t);
  float q = fma_rn(0x1.19f42cp-12f, t, -0x1.16b2e4p-8f);
  q = fma_rn(q, t, 0x1.02186ap-5f);
  q = fma_rn(q, t, -0x1.30a4c8p-3f);
  q = fma_rn(q, t, -0x1.d75f34p-1f);
  q = fma_rn(q, t, -0x1.a0448ep+0f);
  q = fma_rn(q, t, -0x1.0250fap-11f);
  q = sub_rn(1.0f, exp2_polynomial(q));
  return x == x ? copysign_f32(t < 1.0f ? p : q, x) : __builtin_bit_cast(float, 0x7fffffffu);
}

}  // namespace tegula
