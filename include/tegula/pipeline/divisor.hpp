#pragma once

#include <cstdint>

#include "tegula/macros.hpp"
#if !TEGULA_GPU
#include "tegula/layout/refuse.hpp"
#endif

namespace tegula {

/// A number to divide by many times: a division is a multiplication and a shift, some ten cycles on
/// a GPU where that of integers takes a hundred. Source: Granlund and Montgomery, "Division by
/// Invariant Integers using Multiplication", PLDI 1994, figure 4.1.
class Divisor {
 public:
  /// Precondition: 1 <= value < 2^31; the host refuses others.
  TEGULA_HOST_DEVICE constexpr explicit Divisor(int value) {
#if !TEGULA_GPU
    if (value < 1) refuse("Divisor", "a divisor is at least 1", value);
#endif
    auto const d = static_cast<std::uint64_t>(value);
    while ((std::uint64_t{1} << shift_) < d) ++shift_;
    multiplier_ = static_cast<std::uint32_t>(((((std::uint64_t{1} << shift_) - d) << 32) / d) + 1);
  }

  /// dividend / value. Precondition: dividend >= 0.
  TEGULA_HOST_DEVICE friend constexpr int operator/(int dividend, Divisor const& divisor) {
    auto const n = static_cast<std::uint32_t>(dividend);
    auto const high = static_cast<std::uint32_t>((std::uint64_t{divisor.multiplier_} * n) >> 32);
    return static_cast<int>((high + n) >> divisor.shift_);  // high <= n < 2^31
  }

  constexpr bool operator==(Divisor const&) const = default;

 private:
  std::uint32_t multiplier_ = 0;
  int shift_ = 0;
};

}  // namespace tegula
