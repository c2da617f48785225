#pragma once

#include <cstdint>

#include "tegula/arch/memory_access.hpp"
#include "tegula/macros.hpp"
#if !TEGULA_GPU
#include "tegula/numeric/bfloat16.hpp"
#include "tegula/numeric/half.hpp"
#include "tegula/sim/hooks.hpp"
#endif

/// Arithmetic with a stated instruction behind it: PTX ISA, floating point instructions. None is
/// volatile: the compiler may move or merge them.
namespace tegula {

/// 2^x, approximate; subnormal arguments and results are flushed to zero.
TEGULA_DEVICE float ex2_approx_ftz(float x) {
#if TEGULA_GPU
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
#else
  return sim::ex2_approx_ftz(x);
#endif
}

/// Base-2 logarithm, approximate; subnormal arguments count as zero.
TEGULA_DEVICE float lg2_approx_ftz(float x) {
#if TEGULA_GPU
  float r;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
#else
  return sim::lg2_approx_ftz(x);
#endif
}

/// 1 / x, approximate; subnormal arguments and results are flushed to zero.
TEGULA_DEVICE float rcp_approx_ftz(float x) {
#if TEGULA_GPU
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
#else
  return sim::rcp_approx_ftz(x);
#endif
}

/// 1 / sqrt(x), approximate; subnormal arguments are flushed to zero.
TEGULA_DEVICE float rsqrt_approx_ftz(float x) {
#if TEGULA_GPU
  float r;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
#else
  return sim::rsqrt_approx_ftz(x);
#endif
}

/// Hyperbolic tangent, approximate.
TEGULA_DEVICE float tanh_approx(float x) {
#if TEGULA_GPU
  float r;
  asm("tanh.approx.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
#else
  return sim::tanh_approx(x);
#endif
}

/// a * b + c, rounded once to nearest even; a NaN is 0x7fffffff. Contraction is off everywhere:
/// this is the only way to a fused multiply-add.
TEGULA_DEVICE float fma(float a, float b, float c) {
#if TEGULA_GPU
  return __fmaf_rn(a, b, c);
#else
  float const r = __builtin_fmaf(a, b, c);
  return r == r ? r : __builtin_nanf("0x3fffff");
#endif
}

/// The greater: a NaN gives way to a number, and +0 is greater than -0.
TEGULA_DEVICE float max_f32(float a, float b) {
#if TEGULA_GPU
  float r;
  asm("max.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
#else
  if (a != a) return b != b ? __builtin_nanf("0x3fffff") : b;
  if (b != b) return a;
  if (a == b) return __builtin_signbit(a) ? b : a;
  return a > b ? a : b;
#endif
}

/// The lesser: a NaN gives way to a number, and -0 is less than +0.
TEGULA_DEVICE float min_f32(float a, float b) {
#if TEGULA_GPU
  float r;
  asm("min.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
#else
  if (a != a) return b != b ? __builtin_nanf("0x3fffff") : b;
  if (b != b) return a;
  if (a == b) return __builtin_signbit(a) ? a : b;
  return a < b ? a : b;
#endif
}

/// Two floats as a pair of f16, each rounded to nearest even; `lo` takes the low half of the
/// register. NaN becomes 0x7fff.
TEGULA_DEVICE std::uint32_t cvt_rn_f16x2(float hi, float lo) {
#if TEGULA_GPU
  std::uint32_t r;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
  return r;
#else
  return pack(to_half(lo), to_half(hi));
#endif
}

/// Two floats as a pair of bf16, each rounded to nearest even; `lo` takes the low half of the
/// register. NaN becomes 0x7fff.
TEGULA_DEVICE std::uint32_t cvt_rn_bf16x2(float hi, float lo) {
#if TEGULA_GPU
  std::uint32_t r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
  return r;
#else
  return pack(to_bfloat16(lo), to_bfloat16(hi));
#endif
}

}  // namespace tegula
