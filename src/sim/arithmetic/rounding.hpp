#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

/// From the exact sum of a dot-add to its result. Internal.
namespace tegula::sim::detail {

inline constexpr std::uint32_t kInfinity = 0x7f800000u;
inline constexpr std::uint32_t kSign = 0x80000000u;

/// sum * 2^unit toward zero, with `fraction_bits` of a binary32's 23.
inline std::uint32_t binary32_toward_zero(std::int64_t sum, int unit, int fraction_bits) {
  if (sum == 0) return 0;
  std::uint32_t const sign = sum < 0 ? kSign : 0;
  std::uint64_t const magnitude = static_cast<std::uint64_t>(sum < 0 ? -sum : sum);
  int const exponent = static_cast<int>(std::bit_width(magnitude)) - 1 + unit;
  if (exponent > 127) return sign | kInfinity;
  int const held = std::max(exponent, -126);
  // First to the bits that are kept, then to the place of a binary32's last bit.
  int const dropped = held - fraction_bits - unit;
  std::uint64_t const cut = dropped > 63  ? 0
                            : dropped > 0 ? magnitude >> dropped << dropped
                                          : magnitude;
  int const shift = held - 23 - unit;
  std::uint64_t const significand = shift > 63 ? 0 : shift >= 0 ? cut >> shift : cut << -shift;
  if (significand == 0) return 0;
  std::uint32_t const field = exponent < -126 ? 0 : static_cast<std::uint32_t>(exponent + 127);
  return sign | (field << 23) | (static_cast<std::uint32_t>(significand) & 0x7fffffu);
}

}  // namespace tegula::sim::detail
