#pragma once

#include <cstdint>
#include <type_traits>

#include "tegula/arch/convert_fp8.hpp"
#include "tegula/arch/math.hpp"
#include "tegula/numeric/bfloat16.hpp"
#include "tegula/numeric/dtype.hpp"
#include "tegula/numeric/float8.hpp"
#include "tegula/numeric/half.hpp"

namespace tegula {

/// Two values rounded to T (half or bfloat16), to nearest even, in one register: the first in its
/// low half.
template <class T> TEGULA_DEVICE std::uint32_t pack_pair(float low, float high) {
  static_assert(std::is_same_v<T, half> || std::is_same_v<T, bfloat16>);
  if constexpr (std::is_same_v<T, bfloat16>) {
    return cvt_rn_bf16x2(high, low);
  } else {
    return cvt_rn_f16x2(high, low);
  }
}

namespace detail {
template <int Bytes> struct BitsOfSize;
template <> struct BitsOfSize<1> { using Type = std::uint8_t; };
template <> struct BitsOfSize<2> { using Type = std::uint16_t; };
template <> struct BitsOfSize<4> { using Type = std::uint32_t; };

/// A narrow element as a float: exact.
template <class T> TEGULA_DEVICE float widened(T const& x) {
#if TEGULA_GPU
  if constexpr (std::is_same_v<T, half>) {  // PTX ISA, cvt
    float r;
    asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(x.bits));
    return r;
  }
#endif
  return static_cast<float>(x);
}
/// A float as an element of T, rounded as from_float does.
template <class T> TEGULA_DEVICE T narrowed(float x) {
  if constexpr (std::is_same_v<T, half>) {
    return T{static_cast<std::uint16_t>(cvt_rn_f16x2(0.0f, x))};
  } else if constexpr (std::is_same_v<T, bfloat16>) {
    return T{static_cast<std::uint16_t>(cvt_rn_bf16x2(0.0f, x))};
  } else {
#if TEGULA_GPU && __CUDA_ARCH__ >= 890
    if constexpr (std::is_same_v<T, float_e4m3> || std::is_same_v<T, float_e5m2>)
      return cvt_rn_satfinite<T>(x);
    else
#endif
      return from_float<T>(x);
  }
}
}  // namespace detail

/// Value i of those in a register, the first lowest; and the register with that value put in
/// its place.
template <class T> TEGULA_DEVICE T unpack(std::uint32_t packed, int i) {
  using Bits = typename detail::BitsOfSize<sizeof(T)>::Type;
  return __builtin_bit_cast(T, static_cast<Bits>(packed >> (8 * sizeof(T) * i)));
}
template <class T>
TEGULA_DEVICE std::uint32_t replace(std::uint32_t packed, int i, T const& value) {
  using Bits = typename detail::BitsOfSize<sizeof(T)>::Type;
  int const shift = static_cast<int>(8 * sizeof(T)) * i;
  auto const mask = static_cast<std::uint32_t>(static_cast<Bits>(~Bits{0})) << shift;
  return (packed & ~mask) | (static_cast<std::uint32_t>(__builtin_bit_cast(Bits, value)) << shift);
}

}  // namespace tegula
