#pragma once

#include <cstdint>
#include <tegula/macros.hpp>

/// Arithmetic on f32 and f64, each result rounded once to nearest even, the same bits on a GPU, on
/// the simulated machine and in host code. No compiler joins two of these functions into one
/// rounding, whatever its flags say of contraction (nvcc's default is to contract a * b + c).
/// Subnormal numbers are kept, but where nvcc is told to flush those of f32 (-ftz=true, which is in
/// -use_fast_math). PTX ISA: add.rn, sub.rn, mul.rn, div.rn, rcp.rn, sqrt.rn, fma.rn. A GPU has one
/// instruction for a sum, a product and a fma. A quotient and a root are a short subroutine: some
/// 10 instructions for f32, and 20 to 40 for f64.
///
/// A NaN of f32 is 0x7fffffff. Which bits a NaN of f64 has is left open: a GPU passes operands on.
namespace tegula {

namespace detail {

#if !defined(__CUDA_ARCH__)
/// The value, which the compiler knows nothing of: it cannot join what made it and what uses it.
template <class T> inline T opaque(T x) {
#if defined(__x86_64__)
  asm("" : "+x"(x));
#elif defined(__aarch64__)
  asm("" : "+w"(x));
#else
  asm("" : "+m"(x));
#endif
  return x;
}
inline float one_nan(float x) { return x == x ? x : __builtin_bit_cast(float, 0x7fffffffu); }
inline double one_nan(double x) { return x; }
#endif

}  // namespace detail

/// a * b + c, rounded once.
TEGULA_HOST_DEVICE float fma_rn(float a, float b, float c) {
#if defined(__CUDA_ARCH__)
  return __fmaf_rn(a, b, c);
#else
  return detail::one_nan(__builtin_fmaf(a, b, c));
#endif
}
TEGULA_HOST_DEVICE double fma_rn(double a, double b, double c) {
#if defined(__CUDA_ARCH__)
  return __fma_rn(a, b, c);
#else
  return __builtin_fma(a, b, c);
#endif
}
/// The same by its short name.
TEGULA_HOST_DEVICE float fma(float a, float b, float c) { return fma_rn(a, b, c); }

/// a + b
TEGULA_HOST_DEVICE float add_rn(float a, float b) {
#if defined(__CUDA_ARCH__)
  return __fadd_rn(a, b);
#else
  return detail::one_nan(detail::opaque(a + b));
#endif
}
TEGULA_HOST_DEVICE double add_rn(double a, double b) {
#if defined(__CUDA_ARCH__)
  return __dadd_rn(a, b);
#else
  return detail::opaque(a + b);
#endif
}

/// a - b
TEGULA_HOST_DEVICE float sub_rn(float a, float b) {
#if defined(__CUDA_ARCH__)
  return __fsub_rn(a, b);
#else
  return detail::one_nan(detail::opaque(a - b));
#endif
}
TEGULA_HOST_DEVICE double sub_rn(double a, double b) {
#if defined(__CUDA_ARCH__)
  return __dsub_rn(a, b);
#else
  return detail::opaque(a - b);
#endif
}

/// a * b
TEGULA_HOST_DEVICE float mul_rn(float a, float b) {
#if defined(__CUDA_ARCH__)
  return __fmul_rn(a, b);
#else
  return detail::one_nan(detail::opaque(a * b));
#endif
}
TEGULA_HOST_DEVICE double mul_rn(double a, double b) {
#if defined(__CUDA_ARCH__)
  return __dmul_rn(a, b);
#else
  return detail::opaque(a * b);
#endif
}

/// a / b
TEGULA_HOST_DEVICE float div_rn(float a, float b) {
#if defined(__CUDA_ARCH__)
  return __fdiv_rn(a, b);
#else
  return detail::one_nan(detail::opaque(a / b));
#endif
}
TEGULA_HOST_DEVICE double div_rn(double a, double b) {
#if defined(__CUDA_ARCH__)
  return __ddiv_rn(a, b);
#else
  return detail::opaque(a / b);
#endif
}

/// 1 / x
TEGULA_HOST_DEVICE float rcp_rn(float x) {
#if defined(__CUDA_ARCH__)
  return __frcp_rn(x);
#else
  return div_rn(1.0f, x);
#endif
}
TEGULA_HOST_DEVICE double rcp_rn(double x) {
#if defined(__CUDA_ARCH__)
  return __drcp_rn(x);
#else
  return div_rn(1.0, x);
#endif
}

/// The square root; -0 of -0, NaN of what is less.
TEGULA_HOST_DEVICE float sqrt_rn(float x) {
#if defined(__CUDA_ARCH__)
  return __fsqrt_rn(x);
#else
  return detail::one_nan(__builtin_sqrtf(x));
#endif
}
TEGULA_HOST_DEVICE double sqrt_rn(double x) {
#if defined(__CUDA_ARCH__)
  return __dsqrt_rn(x);
#else
  return __builtin_sqrt(x);
#endif
}

/// |x|, the sign bit cleared, of a NaN too.
TEGULA_HOST_DEVICE float abs_f32(float x) {
  return __builtin_bit_cast(float, __builtin_bit_cast(std::uint32_t, x) & 0x7fffffffu);
}
TEGULA_HOST_DEVICE double abs_f64(double x) {
  return __builtin_bit_cast(double, __builtin_bit_cast(std::uint64_t, x) & 0x7fffffffffffffffull);
}

/// The magnitude of the first with the sign of the second. (PTX's copysign has them the other way
/// round; this is the order of C.)
TEGULA_HOST_DEVICE float copysign_f32(float magnitude, float sign) {
  return __builtin_bit_cast(float, (__builtin_bit_cast(std::uint32_t, magnitude) & 0x7fffffffu) |
                                       (__builtin_bit_cast(std::uint32_t, sign) & 0x80000000u));
}
TEGULA_HOST_DEVICE double copysign_f64(double magnitude, double sign) {
  return __builtin_bit_cast(double,
                            (__builtin_bit_cast(std::uint64_t, magnitude) & 0x7fffffffffffffffull) |
                                (__builtin_bit_cast(std::uint64_t, sign) & 0x8000000000000000ull));
}

}  // namespace tegula
