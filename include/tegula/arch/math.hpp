#pragma once

#include <cstdint>

#include "tegula/arch/memory_access.hpp"
#include "tegula/macros.hpp"
#include "tegula/numeric/round_to_integer.hpp"
#include "tegula/numeric/rounded_arithmetic.hpp"
#if !TEGULA_GPU
#include <atomic>

#include "tegula/numeric/bfloat16.hpp"
#include "tegula/numeric/float8.hpp"
#include "tegula/numeric/half.hpp"
#include "tegula/sim/hooks.hpp"
#endif

/// Arithmetic with a stated instruction behind it: PTX ISA, floating point instructions. None is
/// volatile: the compiler may move or merge them. Exactly rounded arithmetic, fma among it, and
/// rounding to integers is host code's, too: numeric/rounded_arithmetic.hpp and
/// numeric/round_to_integer.hpp, which are included here.
namespace tegula {

#if !TEGULA_GPU
namespace detail {
/// Charges the running thread for an instruction of the special-function units, where time is kept.
inline void charge_special_function(bool exponential = false) {
  if (sim::timed_clusters.load(std::memory_order_relaxed) != 0) [[unlikely]]
    sim::special_function(exponential);
}
}  // namespace detail
#endif

/// 2^x, approximate; subnormal arguments and results are flushed to zero.
TEGULA_DEVICE float ex2_approx_ftz(float x) {
#if TEGULA_GPU
  float r;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
#else
  detail::charge_special_function(true);
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
  detail::charge_special_function();
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
  detail::charge_special_function();
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
  detail::charge_special_function();
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
  detail::charge_special_function();
  return sim::tanh_approx(x);
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

/// The greatest of three when their bits are compared as signed integers: of numbers of which one
/// at least is +0 or positive, the greatest; of negative ones the least. A NaN without a sign is
/// above all numbers. (PTX has no maximum of three floats before sm_100, and of three integers
/// Hopper has one instruction, VIMNMX3, at the rate of max_f32.)
TEGULA_DEVICE float max_of_bits(float a, float b, float c) {
#if TEGULA_GPU
  float r;
  asm("{.reg .s32 x, y, z;\n\t"
      "mov.b32 x, %1;\n\tmov.b32 y, %2;\n\tmov.b32 z, %3;\n\t"
      "max.s32 x, x, y;\n\tmax.s32 x, x, z;\n\t"
      "mov.b32 %0, x;}"
      : "=f"(r)
      : "f"(a), "f"(b), "f"(c));
  return r;
#else
  auto const greater = [](float x, float y) {
    return __builtin_bit_cast(std::int32_t, x) < __builtin_bit_cast(std::int32_t, y) ? y : x;
  };
  return greater(greater(a, b), c);
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

/// The lesser, or NaN where either is: min.NaN.f32 (sm_80). -0 is less than +0.
TEGULA_DEVICE float min_nan_f32(float a, float b) {
#if TEGULA_GPU
  float r;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
#else
  if (a != a || b != b) return __builtin_nanf("0x3fffff");
  return min_f32(a, b);
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

/// Four floats as e4m3, each rounded to nearest even and at most 448 in magnitude; x0 takes the
/// lowest byte of the register. NaN becomes 0x7f. (Two cvt.rn.satfinite.e4m3x2.f32.)
TEGULA_DEVICE std::uint32_t cvt_rn_satfinite_e4m3x4(float x0, float x1, float x2, float x3) {
#if TEGULA_GPU
  std::uint32_t r;
  asm("{\n.reg .b16 low, high;\n"
      "cvt.rn.satfinite.e4m3x2.f32 low, %2, %1;\n"
      "cvt.rn.satfinite.e4m3x2.f32 high, %4, %3;\n"
      "mov.b32 %0, {low, high};\n}"
      : "=r"(r)
      : "f"(x0), "f"(x1), "f"(x2), "f"(x3));
  return r;
#else
  std::uint32_t const low = pack(to_float_e4m3(x0), to_float_e4m3(x1));
  return low | static_cast<std::uint32_t>(pack(to_float_e4m3(x2), to_float_e4m3(x3))) << 16;
#endif
}

}  // namespace tegula
