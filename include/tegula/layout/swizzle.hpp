#pragma once

#include <concepts>
#include <cstdint>

#include "tegula/layout/layout.hpp"
#include "tegula/macros.hpp"

namespace tegula {

/// An exclusive-or of one group of bits of an offset into another. With a positive shift:
///
///     offset   ... y y y ... z z z . . . .        the lowest `base` bits are left alone
///                  <- bits ->                     each group has `bits` bits
///                      <- shift ->                the y group lies `shift` bits above the z group
///
/// the z group becomes z ^ y. A negative shift puts the y group at `base` and the z group |shift| bits above it. The offset is
/// in elements of any width; upcast, downcast and recast restate a swizzle for another width.
///
/// Preconditions, checked at construction: bits >= 0, base >= 0, |shift| >= bits (so that the groups are disjoint, which makes
/// the map its own inverse), base + bits + |shift| <= 62. Semantics: CuTe's Swizzle<B,M,S> (CUTLASS, cute/swizzle.hpp).
struct Swizzle {
  int bits = 0;
  int base = 0;
  int shift = 0;

  constexpr Swizzle() = default;
  constexpr Swizzle(int bits, int base, int shift) : bits(bits), base(base), shift(shift) {
    if (bits < 0) refuse("Swizzle", "the number of bits must not be negative", bits, base, shift);
    if (base < 0) refuse("Swizzle", "the base must not be negative", bits, base, shift);
    if (distance() < bits) {
      refuse("Swizzle", "the shift must be at least the number of bits, else the two groups overlap", bits, base, shift);
    }
    if (base + bits + distance() > 62) refuse("Swizzle", "the groups must lie below bit 62", bits, base, shift);
  }

  /// The swizzled offset, in the integer type of the argument: 32-bit arithmetic in a kernel that holds 32-bit offsets.
  /// Laws: s(s(x)) == x; s permutes every aligned block of block() offsets.
  template <std::integral Integer>
  TEGULA_HOST_DEVICE constexpr Integer operator()(Integer offset) const {
    Integer const source = static_cast<Integer>(offset & static_cast<Integer>(source_mask()));
    return static_cast<Integer>(offset ^ (shift < 0 ? source << -shift : source >> shift));
  }

  /// The bits that are read (the y group) and the bits that change (the z group).
  TEGULA_HOST_DEVICE constexpr std::int64_t source_mask() const { return group() << (shift > 0 ? shift : 0); }
  TEGULA_HOST_DEVICE constexpr std::int64_t target_mask() const { return group() << (shift < 0 ? -shift : 0); }

  /// Whether it changes no offset.
  constexpr bool identity() const { return bits == 0; }
  /// The smallest number of offsets, aligned to itself, that every application stays inside of: a power of two, 1 for an identity.
  constexpr std::int64_t block() const { return identity() ? 1 : std::int64_t{1} << (base + bits + (shift < 0 ? -shift : 0)); }

  friend constexpr bool operator==(Swizzle const&, Swizzle const&) = default;

  TEGULA_HOST_DEVICE constexpr std::int64_t group() const { return ((std::int64_t{1} << bits) - 1) << base; }
  constexpr int distance() const { return shift < 0 ? -shift : shift; }
};

/// The swizzle that undoes this one: itself.
constexpr Swizzle inverse(Swizzle const& swizzle) { return swizzle; }

/// The exponent of a power of two; refused for any other number.
constexpr int exact_log2(char const* operation, std::int64_t value) {
  if (value <= 0 || (value & (value - 1)) != 0) refuse(operation, "the factor must be a power of two", value);
  int log = 0;
  while ((std::int64_t{1} << log) < value) ++log;
  return log;
}

/// The same map for elements `factor` times as wide: upcast(s, n)(x) == s(n * x + k) / n for every 0 <= k < n.
/// `factor` must be a power of two, and the swizzle must not reorder the elements inside a wide one (base >= log2(factor)): CuTe
/// drops such bits silently, and so answers with another map.
constexpr Swizzle upcast(Swizzle const& swizzle, std::int64_t factor) {
  int const log = exact_log2("upcast", factor);
  if (swizzle.identity()) return Swizzle(0, swizzle.base > log ? swizzle.base - log : 0, swizzle.shift);
  if (swizzle.base < log) {
    refuse("upcast", "the swizzle reorders the elements inside a wider one", swizzle.bits, swizzle.base, swizzle.shift, factor);
  }
  return Swizzle(swizzle.bits, swizzle.base - log, swizzle.shift);
}

/// The same map for elements 1 / `factor` as wide: downcast(s, n)(n * x + k) == n * s(x) + k for 0 <= k < n, a power of two.
constexpr Swizzle downcast(Swizzle const& swizzle, std::int64_t factor) {
  int const log = exact_log2("downcast", factor);
  return Swizzle(swizzle.bits, swizzle.base + log, swizzle.shift);
}

/// The same map for elements of `to_bits` where it was stated for elements of `from_bits`. Bytes are 8 bits: recast(s, 16, 8) is
/// the byte form of a swizzle of half-precision elements. One width must divide the other by a power of two.
constexpr Swizzle recast(Swizzle const& swizzle, int from_bits, int to_bits) {
  if (from_bits <= 0 || to_bits <= 0) refuse("recast", "the element widths must be positive", from_bits, to_bits);
  if (to_bits % from_bits == 0) return upcast(swizzle, to_bits / from_bits);
  if (from_bits % to_bits == 0) return downcast(swizzle, from_bits / to_bits);
  refuse("recast", "one element width must divide the other", from_bits, to_bits);
}

}  // namespace tegula
