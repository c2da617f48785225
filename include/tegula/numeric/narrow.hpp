#pragma once

#include <cstdint>
#include <initializer_list>
#include <tegula/macros.hpp>

/// The one conversion between binary32 and every narrower binary format, in integers, so that its
/// bits are the same in a constant expression, on the host and on a GPU. The named formats
/// (half.hpp, bfloat16.hpp, ...) are bit holders on top of it.
///
/// A format is made of its bits in braces, half{0x3c00}, and of a number by its conversion,
/// to_half(1.0f) or from_float<half>(1.0f). half(1.0f) and static_cast<half>(1.0f), in which one
/// could be taken for the other, do not compile: of an aggregate C++20 makes these of the bits, and
/// so the formats have a constructor, of a braced list.
namespace tegula {

enum class Rounding : std::uint8_t {
  kNearestEven,  ///< PTX .rn
  kTowardZero,   ///< PTX .rz
  kNearestAway,  ///< PTX .rna: to nearest, ties away from zero
};

/// What a finite value too large for the format, or an infinity, becomes.
enum class Overflow : std::uint8_t {
  kInfinity,  ///< IEEE: the infinity of the format (PTX without .satfinite)
  kSaturate,  ///< the largest finite value (PTX .satfinite)
};

/// A binary format of at most 19 bits: 1 sign bit, exponent_bits, mantissa_bits.
/// max_finite is the largest finite magnitude's code; nan_code is what every NaN becomes, sign
/// included (PTX cvt's canonical NaN).
struct NarrowFormat {
  int exponent_bits;
  int mantissa_bits;
  std::uint32_t max_finite;
  std::uint32_t nan_code;
  TEGULA_HOST_DEVICE constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
};

inline constexpr NarrowFormat kHalfFormat{5, 10, 0x7bff, 0x7fff};
inline constexpr NarrowFormat kBfloat16Format{8, 7, 0x7f7f, 0x7fff};
inline constexpr NarrowFormat kTfloat32Format{8, 10, 0x3fbff, 0x3ffff};
inline constexpr NarrowFormat kE4m3Format{4, 3, 0x7e, 0x7f};
inline constexpr NarrowFormat kE5m2Format{5, 2, 0x7b, 0x7f};
inline constexpr NarrowFormat kE3m2Format{3, 2, 0x1f, 0x1f};
inline constexpr NarrowFormat kE2m3Format{2, 3, 0x1f, 0x1f};
inline constexpr NarrowFormat kE2m1Format{2, 1, 0x7, 0x7};

namespace detail {

/// The only value of a braced list.
template <class T> TEGULA_HOST_DEVICE constexpr T only(std::initializer_list<T> list) {
#if !TEGULA_GPU
  if (list.size() != 1) __builtin_trap();
#endif
  return *list.begin();
}

TEGULA_HOST_DEVICE constexpr std::uint32_t float_bits(float x) {
  return __builtin_bit_cast(std::uint32_t, x);
}
TEGULA_HOST_DEVICE constexpr float bits_float(std::uint32_t x) {
  return __builtin_bit_cast(float, x);
}

/// value / 2^shift, rounded; 1 <= shift; value < 2^24.
template <Rounding R>
TEGULA_HOST_DEVICE constexpr std::uint32_t shift_right_rounded(std::uint32_t value, int shift) {
  if (shift > 25) return 0;  // below a quarter of the last place
  std::uint32_t const kept = value >> shift;
  if constexpr (R == Rounding::kTowardZero) return kept;
  std::uint32_t const half = std::uint32_t{1} << (shift - 1);
  if constexpr (R == Rounding::kNearestAway) return (value + half) >> shift;
  return (value + half - 1 + (kept & 1)) >> shift;
}

/// The code of binary32 `bits` in format `F`, sign bit in its place.
template <NarrowFormat F, Rounding R, Overflow O>
TEGULA_HOST_DEVICE constexpr std::uint32_t narrow(std::uint32_t bits) {
  constexpr int kDropped = 23 - F.mantissa_bits;
  constexpr int kRebias = 127 - F.bias();
  constexpr std::uint32_t kSign = std::uint32_t{1} << (F.exponent_bits + F.mantissa_bits);
  constexpr std::uint32_t kInfinity = ((std::uint32_t{1} << F.exponent_bits) - 1)
                                      << F.mantissa_bits;

  std::uint32_t const magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return F.nan_code;
  std::uint32_t const sign = (bits >> 31) != 0 ? kSign : 0;

  std::uint32_t code = 0;
  int const exponent = static_cast<int>(magnitude >> 23);
  // normal in F: round the whole word, a carry into the exponent is right as it is
  if (exponent > kRebias) {
    std::uint32_t rounded = magnitude;
    if constexpr (R == Rounding::kNearestEven) {
      rounded += (std::uint32_t{1} << (kDropped - 1)) - 1 + ((magnitude >> kDropped) & 1);
    } else if constexpr (R == Rounding::kNearestAway) {
      rounded += std::uint32_t{1} << (kDropped - 1);
    }
    code = (rounded >> kDropped) - (static_cast<std::uint32_t>(kRebias) << F.mantissa_bits);
  } else {  // subnormal in F, or zero
    std::uint32_t const implicit = exponent != 0 ? 0x800000u : 0;
    int const counted = exponent != 0 ? exponent : 1;
    code = shift_right_rounded<R>((magnitude & 0x7fffffu) | implicit,
                                  kDropped + kRebias + 1 - counted);
  }
  if (code > F.max_finite) {
    bool const was_infinite = magnitude == 0x7f800000u;
    bool const saturates =
        O == Overflow::kSaturate || (R == Rounding::kTowardZero && !was_infinite);
    code = saturates ? F.max_finite : kInfinity;
  }
  return sign | code;
}

/// The binary32 bits of a code of format `F`: exact. Infinity and NaN are those of an IEEE-like
/// format (top exponent); the formats that lack them handle their NaN before calling. A NaN
/// becomes 0x7fffffff.
template <NarrowFormat F, bool HasInfinity>
TEGULA_HOST_DEVICE constexpr std::uint32_t widen(std::uint32_t code) {
  constexpr int kDropped = 23 - F.mantissa_bits;
  constexpr int kRebias = 127 - F.bias();
  constexpr std::uint32_t kTopExponent = (std::uint32_t{1} << F.exponent_bits) - 1;
  constexpr std::uint32_t kMantissa = (std::uint32_t{1} << F.mantissa_bits) - 1;

  std::uint32_t const sign = ((code >> (F.exponent_bits + F.mantissa_bits)) & 1) << 31;
  std::uint32_t const exponent = (code >> F.mantissa_bits) & kTopExponent;
  std::uint32_t mantissa = code & kMantissa;
  if constexpr (HasInfinity) {
    if (exponent == kTopExponent) return mantissa != 0 ? 0x7fffffffu : (sign | 0x7f800000u);
  }
  if (exponent != 0) return sign | ((exponent + kRebias) << 23) | (mantissa << kDropped);
  if constexpr (kRebias == 0)
    return sign | (mantissa << kDropped);  // binary32's own exponent range: subnormal stays so
  if (mantissa == 0) return sign;
  std::uint32_t scale = kRebias + 1;
  while ((mantissa & (kMantissa + 1)) == 0) {
    mantissa <<= 1;
    --scale;
  }
  return sign | (scale << 23) | ((mantissa & kMantissa) << kDropped);
}

}  // namespace detail
}  // namespace tegula
