#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

#include "tegula/layout/layout.hpp"
#include "tegula/macros.hpp"

namespace tegula {

/// An exclusive-or of one group of bits of an offset into another. With a positive shift:
///
///     offset   ... y y y ... z z z . . . .        the lowest `base` bits are left alone
///                  <- bits ->                     each group has `bits` bits
///                      <- shift ->                the y group lies `shift` bits above the z group
///
/// the z group becomes z ^ y. A negative shift puts the y group at `base` and the z group |shift|
/// bits above it. The offset is in elements of any width; upcast, downcast and recast restate a
/// swizzle for another width.
///
/// Preconditions, checked at construction: bits >= 0, base >= 0, |shift| >= bits (so that the
/// groups are disjoint, which makes the map its own inverse), base + bits + |shift| <= 62.
/// Semantics: CuTe's Swizzle<B,M,S> (CUTLASS, cute/swizzle.hpp).
struct Swizzle {
  int bits = 0;
  int base = 0;
  int shift = 0;

  constexpr Swizzle() = default;
  constexpr Swizzle(int bits, int base, int shift) : bits(bits), base(base), shift(shift) {
    if (bits < 0) refuse("Swizzle", "the number of bits is negative", bits, base, shift);
    if (base < 0) refuse("Swizzle", "the base is negative", bits, base, shift);
    bool const within = bits <= 62 && base <= 62 && shift >= -62 && shift <= 62;
    if (!within) refuse("Swizzle", "the groups reach above bit 62", bits, base, shift);
    if (distance() < bits)
      refuse("Swizzle", "the shift is less than the number of bits, so the groups overlap", bits,
             base, shift);
    if (base + bits + distance() > 62)
      refuse("Swizzle", "the groups reach above bit 62", bits, base, shift);
  }

  /// The swizzled offset, in the integer type of the argument: 32-bit arithmetic in a kernel that
  /// holds 32-bit offsets. Of a negative one the bits of two's complement move. Bits that the type
  /// does not have are read as 0, and stay. Laws: s(s(x)) == x; s permutes every aligned block of
  /// block() offsets.
  template <std::integral Integer>
  TEGULA_HOST_DEVICE constexpr Integer operator()(Integer offset) const {
    using Bits = std::conditional_t<(sizeof(Integer) > 4), std::uint64_t, std::uint32_t>;
    constexpr Bits all = static_cast<Bits>(-1) >> (8 * (sizeof(Bits) - sizeof(Integer)));
    Bits const bits_of_offset = static_cast<Bits>(offset) & all;
    Bits const source = bits_of_offset & static_cast<Bits>(source_mask());
    int const distance = shift < 0 ? -shift : shift;
    Bits const moved = distance >= static_cast<int>(8 * sizeof(Bits)) ? Bits{0}
                       : shift < 0                                    ? source << distance
                                                                      : source >> distance;
    return static_cast<Integer>(bits_of_offset ^ (moved & all));
  }

  /// The bits that are read (the y group) and the bits that change (the z group).
  TEGULA_HOST_DEVICE constexpr std::int64_t source_mask() const {
    return group() << (shift > 0 ? shift : 0);
  }
  TEGULA_HOST_DEVICE constexpr std::int64_t target_mask() const {
    return group() << (shift < 0 ? -shift : 0);
  }

  /// Whether it changes no offset.
  constexpr bool identity() const { return bits == 0; }
  /// The smallest number of offsets, aligned to itself, that every application stays inside of: a
  /// power of two, 1 for an identity.
  constexpr std::int64_t block() const {
    return identity() ? 1 : std::int64_t{1} << (base + bits + (shift < 0 ? -shift : 0));
  }

  /// The number of offsets after which the pattern repeats: s(x + period) == s(x) + period. A power
  /// of two, 1 for an identity.
  constexpr std::int64_t period() const {
    return identity() ? 1 : std::int64_t{1} << (base + bits + distance());
  }

  friend constexpr bool operator==(Swizzle const&, Swizzle const&) = default;

  TEGULA_HOST_DEVICE constexpr std::int64_t group() const {
    return ((std::int64_t{1} << bits) - 1) << base;
  }
  constexpr int distance() const { return shift < 0 ? -shift : shift; }
};

/// The text form, `Sw<3,4,3>`.
template <class Sink> constexpr void write_form(Sink& sink, Swizzle const& swizzle) {
  write_form(sink, "Sw<");
  write_form(sink, swizzle.bits);
  sink.write(',');
  write_form(sink, swizzle.base);
  sink.write(',');
  write_form(sink, swizzle.shift);
  sink.write('>');
}

/// The swizzle that undoes this one: itself.
constexpr Swizzle inverse(Swizzle const& swizzle) { return swizzle; }

/// The exponent of a power of two; refused for any other number.
constexpr int exact_log2(char const* operation, std::int64_t value) {
  if (value <= 0 || (value & (value - 1)) != 0)
    refuse(operation, "the factor must be a power of two", value);
  int log = 0;
  while ((std::int64_t{1} << log) < value) ++log;
  return log;
}

/// The same map for elements `factor` times as wide: upcast(s, n)(x) == s(n * x + k) / n for
/// every 0 <= k < n. `factor` must be a power of two, and the swizzle must not reorder the elements
/// inside a wide one (base >= log2(factor)): CuTe drops such bits silently, and so answers with
/// another map.
constexpr Swizzle upcast(Swizzle const& swizzle, std::int64_t factor) {
  int const log = exact_log2("upcast", factor);
  if (swizzle.identity())
    return Swizzle(0, swizzle.base > log ? swizzle.base - log : 0, swizzle.shift);
  if (swizzle.base < log) {
    refuse("upcast", "the swizzle reorders the elements inside a wider one", swizzle, factor);
  }
  return Swizzle(swizzle.bits, swizzle.base - log, swizzle.shift);
}

/// The same map for elements 1 / `factor` as wide: downcast(s, n)(n * x + k) == n * s(x) + k for 0
/// <= k < n, a power of two.
constexpr Swizzle downcast(Swizzle const& swizzle, std::int64_t factor) {
  int const log = exact_log2("downcast", factor);
  return Swizzle(swizzle.bits, swizzle.base + log, swizzle.shift);
}

/// The same map for elements of `to_bits` where it was stated for elements of `from_bits`. Bytes
/// are 8 bits: recast(s, 16, 8) is the byte form of a swizzle of half-precision elements. One width
/// must divide the other by a power of two.
constexpr Swizzle recast(Swizzle const& swizzle, std::int64_t from_bits, std::int64_t to_bits) {
  if (from_bits <= 0 || to_bits <= 0)
    refuse("recast", "the element widths must be positive", from_bits, to_bits);
  if (to_bits % from_bits == 0) return upcast(swizzle, to_bits / from_bits);
  if (from_bits % to_bits == 0) return downcast(swizzle, from_bits / to_bits);
  refuse("recast", "one element width must divide the other", from_bits, to_bits);
}

namespace detail {

/// Why a layout is not linear over F2 in the bits of its flat index.
enum class NotLinear : std::uint8_t { no, extent, axis, negative, carry };

/// The offsets of the bits of a layout's flat index, where the layout is linear over F2 in them:
/// every extent a power of two, every stride an integer >= 0, and no two bits' offsets share a bit,
/// so that their sums never carry and are exclusive-ors.
struct IndexBits {
  int count = 0;
  NotLinear why = NotLinear::no;
  std::uint64_t offsets[62] = {};

  constexpr bool linear() const { return why == NotLinear::no; }
};

constexpr IndexBits index_bits(Layout const& layout) {
  IndexBits bits;
  std::uint64_t used = 0;
  for (int i = 0; i < layout.count && bits.linear(); ++i) {
    std::int64_t const extent = layout.extents[i];
    if (extent == 1) continue;
    if ((extent & (extent - 1)) != 0) bits.why = NotLinear::extent;
    if (layout.axes[i] != 0) bits.why = NotLinear::axis;
    if (layout.strides[i] < 0) bits.why = NotLinear::negative;
    for (std::int64_t step = 1; step < extent && bits.linear(); step *= 2) {
      std::uint64_t const offset = static_cast<std::uint64_t>(layout.strides[i] * step);
      if ((used & offset) != 0) bits.why = NotLinear::carry;
      used |= offset;
      bits.offsets[bits.count++] = offset;
    }
  }
  return bits;
}

/// Whether the layout's offsets are 0 to size() - 1, each once: its leaves, sorted by stride,
/// follow one another without gap or overlap.
constexpr bool compact(Layout const& layout) {
  std::int64_t covered = 1;
  for (int i = 0; i < layout.count; ++i) {
    if (layout.extents[i] > 1 && layout.strides[i] == covered) {
      covered *= layout.extents[i];
      i = -1;  // the leaf that goes on from here may be any
    }
  }
  return covered == layout.size();
}

/// The greatest exclusive-or of any of the values, which are destroyed.
constexpr std::uint64_t greatest_xor(std::uint64_t* values, int count) {
  std::uint64_t greatest = 0;
  for (int used = 0; used < count; ++used) {
    for (int i = used + 1; i < count; ++i) {
      if (values[i] > values[used]) {
        std::uint64_t const swap = values[i];
        values[i] = values[used];
        values[used] = swap;
      }
    }
    std::uint64_t const leading = values[used];
    if (leading == 0) break;
    if ((greatest ^ leading) > greatest) greatest ^= leading;
    for (int i = used + 1; i < count; ++i)
      values[i] = (values[i] ^ leading) < values[i] ? values[i] ^ leading : values[i];
  }
  return greatest;
}

}  // namespace detail

/// A layout followed by a swizzle: x -> swizzle(offset + layout(x)). A structural literal type; a
/// plain layout converts to it. The offset and the layout's reach together are at most 2^62, which
/// is checked at construction. Text form `Sw<3,4,3> o (8,64):(64,1)`, with `o OFFSET` in the middle
/// where the offset is not zero. Semantics: CuTe's ComposedLayout<Swizzle, Offset, Layout>.
struct SwizzledLayout {
  Swizzle swizzle;
  std::int64_t offset = 0;
  Layout layout;

  constexpr SwizzledLayout() = default;
  constexpr SwizzledLayout(Layout const& layout) : layout(layout) {}
  constexpr SwizzledLayout(Swizzle const& swizzle, Layout const& layout)
      : SwizzledLayout(swizzle, 0, layout) {}
  constexpr SwizzledLayout(Swizzle const& swizzle, std::int64_t offset, Layout const& layout)
      : swizzle(swizzle), offset(offset), layout(layout) {
    if (layout.has_axes())
      refuse("SwizzledLayout", "the layout's values are coordinates, which have no bits to swizzle",
             layout);
    if (offset == 0) return;
    bool const within = offset >= -detail::kLargest && offset <= detail::kLargest;
    if (!within) refuse("SwizzledLayout", "the offset is beyond 2^62", offset, layout);
    detail::add(offset < 0 ? -offset : offset, layout.cosize() - 1);
  }

  constexpr int leaves() const { return layout.leaves(); }
  constexpr int rank() const { return layout.rank(); }
  constexpr int depth() const { return layout.depth(); }
  constexpr Tuple shape() const { return layout.shape(); }
  constexpr std::int64_t size() const { return layout.size(); }

  /// 1 + the greatest offset: how many elements an array needs that holds every offset. (CuTe gives
  /// the layout's, before the swizzle, which is too small where the layout leaves holes that the
  /// swizzle moves elements into.)
  constexpr std::int64_t cosize() const {
    if (detail::compact(layout) && offset >= 0 && offset % swizzle.block() == 0 &&
        size() % swizzle.block() == 0)
      return offset + size();
    // Leaves whose strides are whole periods of the swizzle add to its result. So do as many steps
    // of any other leaf as make whole periods, and the greatest offset lies among the last so many
    // steps: only those need looking at.
    std::int64_t const period = swizzle.period();
    std::int64_t outside = 0;
    std::int64_t start = offset;
    Layout inside;
    for (int i = 0; i < layout.count; ++i) {
      std::int64_t const extent = layout.extents[i];
      std::int64_t const stride = layout.strides[i];
      if (stride % period == 0) {
        if (stride > 0) outside += (extent - 1) * stride;
        continue;
      }
      std::int64_t const steps = stride > 0 ? period / (stride & -stride) : extent;
      std::int64_t const skipped = extent > steps ? extent - steps : 0;
      start += skipped * stride;
      inside.append_leaf(extent - skipped, layout.stride(i));
    }
    detail::IndexBits bits = detail::index_bits(inside);
    if (bits.linear() && start >= 0 && start % period == 0) {
      for (int i = 0; i < bits.count; ++i) bits.offsets[i] = swizzle(bits.offsets[i]);
      return 1 + start + outside +
             static_cast<std::int64_t>(detail::greatest_xor(bits.offsets, bits.count));
    }
    constexpr std::int64_t kMostTried = std::int64_t{1} << 24;
    if (inside.size() > kMostTried)
      refuse("cosize", "more than 2^24 offsets would have to be swizzled", layout);
    std::int64_t greatest = swizzle(start);
    std::int64_t digits[kMaxLeaves] = {};
    // steps through the coordinates, the first leaf fastest
    for (int leaf = 0; leaf < inside.count;) {
      if (++digits[leaf] == inside.extents[leaf]) {
        start -= (inside.extents[leaf] - 1) * inside.strides[leaf];
        digits[leaf++] = 0;
        continue;
      }
      start += inside.strides[leaf];
      leaf = 0;
      std::int64_t const at = swizzle(start);
      if (at > greatest) greatest = at;
    }
    return 1 + outside + greatest;
  }

  /// The offset at a flat colexicographic index, at one index per mode, or at a coordinate, as
  /// of Layout.
  TEGULA_HOST_DEVICE constexpr std::int64_t operator()(std::int64_t index) const {
    return swizzle(detail::unbounded_step(layout(index), offset, 1));
  }
  template <class... Rest>
  requires(sizeof...(Rest) > 0 && (... && std::integral<Rest>)) TEGULA_HOST_DEVICE
      constexpr std::int64_t
      operator()(std::int64_t first, Rest... rest) const {
    return swizzle(detail::unbounded_step(layout(first, rest...), offset, 1));
  }
  constexpr std::int64_t operator()(Tuple const& coord) const {
    return swizzle(detail::add(layout(coord), offset));
  }

  /// Mode `mode`, the others at zero.
  constexpr SwizzledLayout operator[](int mode) const { return {swizzle, offset, layout[mode]}; }

  friend constexpr bool operator==(SwizzledLayout const&, SwizzledLayout const&) = default;
};

/// The text form: `Sw<3,4,3> o (8,64):(64,1)`, or `Sw<3,4,3> o 16 o (8,64):(64,1)` with an offset
/// of 16. A plain layout without swizzle and offset is written as one.
template <class Sink> constexpr void write_form(Sink& sink, SwizzledLayout const& layout) {
  if (layout.swizzle != Swizzle() || layout.offset != 0) {
    write_form(sink, layout.swizzle);
    write_form(sink, " o ");
  }
  if (layout.offset != 0) {
    write_form(sink, layout.offset);
    write_form(sink, " o ");
  }
  write_form(sink, layout.layout);
}

constexpr std::int64_t size(SwizzledLayout const& layout) { return layout.size(); }
constexpr std::int64_t cosize(SwizzledLayout const& layout) { return layout.cosize(); }
constexpr int rank(SwizzledLayout const& layout) { return layout.rank(); }
constexpr int depth(SwizzledLayout const& layout) { return layout.depth(); }

/// The swizzle after the layout: composition(s, l)(x) == s(l(x)). The other compositions are in
/// swizzled_layout.hpp.
constexpr SwizzledLayout composition(Swizzle const& swizzle, Layout const& layout) {
  return {swizzle, layout};
}

}  // namespace tegula
