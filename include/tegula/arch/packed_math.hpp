#pragma once

#include <cstdint>

#include "tegula/macros.hpp"
#if !TEGULA_GPU
#include "tegula/numeric/bfloat16.hpp"
#include "tegula/numeric/half.hpp"
#include "tegula/numeric/narrow_double.hpp"
#endif

/// Arithmetic on pairs of 16-bit floats in a register, half by half: PTX ISA, half precision
/// floating point instructions. Each result is rounded once to nearest even, and no compiler
/// contracts two of them; subnormal numbers are kept; a NaN is 0x7fff. (cvt_rn_f16x2 and
/// cvt_rn_bf16x2 of math.hpp make such pairs, half2 and __nv_bfloat162 in CUDA.)
namespace tegula {

#if !TEGULA_GPU
namespace detail {

template <class T> struct PackedFormat;
template <> struct PackedFormat<half> {
  static constexpr auto narrow = [](float x) { return to_half(x); };
};
template <> struct PackedFormat<bfloat16> {
  static constexpr auto narrow = [](float x) { return to_bfloat16(x); };
};

/// `f` of the numbers in the lower halves, and of those in the upper halves; f gives a double that
/// rounds as the exact result does.
template <class T, class F, class... Words> std::uint32_t per_half(F f, Words... words) {
  auto const of = [&](int shift) {
    return PackedFormat<T>::narrow(
        rounded_to_odd(f(double{to_float(T{static_cast<std::uint16_t>(words >> shift)})}...)));
  };
  return pack(of(0), of(16));
}

/// The greater where `Greatest`, else the lesser; -0 is less than +0. A NaN wins where `Nan`, else
/// it gives way.
template <class T, bool Greatest, bool Nan>
std::uint32_t packed_extreme(std::uint32_t a, std::uint32_t b) {
  return per_half<T>(
      [](double x, double y) {
        if (x != x) return Nan ? x : y;
        if (y != y) return Nan ? y : x;
        bool const second =
            x == y ? __builtin_signbit(x) == (Greatest ? 1 : 0) : (x < y) == Greatest;
        return second ? y : x;
      },
      a, b);
}

}  // namespace detail
#endif

/// a + b
TEGULA_DEVICE std::uint32_t add_rn_f16x2(std::uint32_t a, std::uint32_t b) {
#if TEGULA_GPU
  std::uint32_t r;
  asm("add.rn.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  return r;
#else
  return detail::per_half<half>([](double x, double y) { return x + y; }, a, b);
#endif
}
/// a - b
TEGULA_DEVICE std::uint32_t sub_rn_f16x2(std::uint32_t a, std::uint32_t b) {
#if TEGULA_GPU
  std::uint32_t r;
  asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  return r;
#else
  return detail::per_half<half>([](double x, double y) { return x - y; }, a, b);
#endif
}
/// a * b
TEGULA_DEVICE std::uint32_t mul_rn_f16x2(std::uint32_t a, std::uint32_t b) {
#if TEGULA_GPU
  std::uint32_t r;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  return r;
#else
  return detail::per_half<half>([](double x, double y) { return x * y; }, a, b);
#endif
}
/// a * b + c
TEGULA_DEVICE std::uint32_t fma_rn_f16x2(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
#if TEGULA_GPU
  std::uint32_t r;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
  return r;
#else
  return detail::per_half<half>(
      [](double x, double y, double z) { return sum_rounded_to_odd(x * y, z); }, a, b, c);
#endif
}
/// The greater: a NaN gives way to a number, and +0 is greater than -0.
TEGULA_DEVICE std::uint32_t max_f16x2(std::uint32_t a, std::uint32_t b) {
#if TEGULA_GPU
  std::uint32_t r;
  asm("max.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  return r;
#else
  return detail::packed_extreme<half, true, false>(a, b);
#endif
}
/// The lesser, likewise.
TEGULA_DEVICE std::uint32_t min_f16x2(std::uint32_t a, std::uint32_t b) {
#if TEGULA_GPU
  std::uint32_t r;
  asm("min.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  return r;
#else
  return detail::packed_extreme<half, false, false>(a, b);
#endif
}
/// The greater, and a NaN where one of them is: max.NaN.
TEGULA_DEVICE std::uint32_t max_nan_f16x2(std::uint32_t a, std::uint32_t b) {
#if TEGULA_GPU
  std::uint32_t r;
  asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  return r;
#else
  return detail::packed_extreme<half, true, true>(a, b);
#endif
}
/// The lesser, likewise: min.NaN.
TEGULA_DEVICE std::uint32_t min_nan_f16x2(std::uint32_t a, std::uint32_t b) {
#if TEGULA_GPU
  std::uint32_t r;
  asm("min.NaN.f16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  return r;
#else
  return detail::packed_extreme<half, false, true>(a, b);
#endif
}

/// a * b + c
TEGULA_DEVICE std::uint32_t fma_rn_bf16x2(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
#if TEGULA_GPU
  std::uint32_t r;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
  return r;
#else
  return detail::per_half<bfloat16>(
      [](double x, double y, double z) { return sum_rounded_to_odd(x * y, z); }, a, b, c);
#endif
}
/// a + b: a * 1 + b, for sm_80 has no other addition of bf16. The rounding and the signs of zeros
/// are an addition's.
TEGULA_DEVICE std::uint32_t add_rn_bf16x2(std::uint32_t a, std::uint32_t b) {
  return fma_rn_bf16x2(a, 0x3f803f80u, b);
}
/// a - b: b * -1 + a, likewise.
TEGULA_DEVICE std::uint32_t sub_rn_bf16x2(std::uint32_t a, std::uint32_t b) {
  return fma_rn_bf16x2(b, 0xbf80bf80u, a);
}
/// a * b: a * b + -0, likewise.
TEGULA_DEVICE std::uint32_t mul_rn_bf16x2(std::uint32_t a, std::uint32_t b) {
  return fma_rn_bf16x2(a, b, 0x80008000u);
}
/// The greater: a NaN gives way to a number, and +0 is greater than -0.
TEGULA_DEVICE std::uint32_t max_bf16x2(std::uint32_t a, std::uint32_t b) {
#if TEGULA_GPU
  std::uint32_t r;
  asm("max.bf16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  return r;
#else
  return detail::packed_extreme<bfloat16, true, false>(a, b);
#endif
}
/// The lesser, likewise.
TEGULA_DEVICE std::uint32_t min_bf16x2(std::uint32_t a, std::uint32_t b) {
#if TEGULA_GPU
  std::uint32_t r;
  asm("min.bf16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  return r;
#else
  return detail::packed_extreme<bfloat16, false, false>(a, b);
#endif
}
/// The greater, and a NaN where one of them is: max.NaN.
TEGULA_DEVICE std::uint32_t max_nan_bf16x2(std::uint32_t a, std::uint32_t b) {
#if TEGULA_GPU
  std::uint32_t r;
  asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  return r;
#else
  return detail::packed_extreme<bfloat16, true, true>(a, b);
#endif
}
/// The lesser, likewise: min.NaN.
TEGULA_DEVICE std::uint32_t min_nan_bf16x2(std::uint32_t a, std::uint32_t b) {
#if TEGULA_GPU
  std::uint32_t r;
  asm("min.NaN.bf16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  return r;
#else
  return detail::packed_extreme<bfloat16, false, true>(a, b);
#endif
}

}  // namespace tegula
