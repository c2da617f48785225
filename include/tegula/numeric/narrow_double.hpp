#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace tegula {

/// The float next to `value` from which any rounding to nearest even of at most 22 bits of
/// significand gives what it gives of `value` itself: `value` where it is a float, else the one of
/// its two neighbours with an odd last bit (Boldo and Melquiond, "When double rounding is odd",
/// 2005). Rounding to nearest twice is wrong: 1 + 2^-11 + 2^-30 would be f16's 1.
inline float rounded_to_odd(double value) {
  float const nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) == value || std::isnan(value)) return nearest;
  if (std::isinf(nearest)) return std::copysign(std::numeric_limits<float>::max(), nearest);
  std::uint32_t bits = std::bit_cast<std::uint32_t>(nearest);
  bool const away = std::fabs(static_cast<double>(nearest)) > std::fabs(value);
  bits = (away ? bits - 1 : bits) | 1;
  return std::bit_cast<float>(bits);
}

/// a + b, rounded to the double next to the sum whose last bit is odd, where it is none: rounding
/// it again, to at most 51 bits of significand, gives what rounding the sum once does. The error of
/// the sum is Knuth's TwoSum.
inline double sum_rounded_to_odd(double a, double b) {
  double const sum = a + b;
  double const of_a = sum - b;
  double const of_b = sum - of_a;
  double const error = (a - of_a) + (b - of_b);
  auto const bits = std::bit_cast<std::uint64_t>(sum);
  if (!std::isfinite(sum) || error == 0 || (bits & 1) != 0) return sum;
  bool const away = (error < 0) == (sum > 0);
  return std::bit_cast<double>(away ? bits - 1 : bits + 1);
}

}  // namespace tegula
