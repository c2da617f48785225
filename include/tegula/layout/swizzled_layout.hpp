#pragma once

#include "tegula/layout/algebra.hpp"
#include "tegula/layout/swizzle.hpp"

/// The layout algebra on swizzled layouts. Every operation acts on the layout before the swizzle,
/// where index and offset still add, and leaves swizzle and offset as they are; the law of the
/// plain operation therefore holds of the whole map. What the plain operation refuses is refused
/// here too. (CuTe: the same operations on ComposedLayout.)
namespace tegula {

/// composition(s, b)(x) == s(b(x)).
constexpr SwizzledLayout composition(SwizzledLayout const& outer, Layout const& inner) {
  return {outer.swizzle, outer.offset, composition(outer.layout, inner)};
}
/// Mode by mode: mode i of the result is mode i of `outer` composed with tiler[i].
constexpr SwizzledLayout composition(SwizzledLayout const& outer, Tiler const& inner) {
  return {outer.swizzle, outer.offset, composition(outer.layout, inner)};
}

/// The same map of the flat index with the fewest leaves; with a profile, mode by mode.
constexpr SwizzledLayout coalesce(SwizzledLayout const& layout) {
  return {layout.swizzle, layout.offset, coalesce(layout.layout)};
}
constexpr SwizzledLayout coalesce(SwizzledLayout const& layout, Tuple const& profile) {
  return {layout.swizzle, layout.offset, coalesce(layout.layout, profile)};
}

constexpr SwizzledLayout flatten(SwizzledLayout const& layout) {
  return {layout.swizzle, layout.offset, flatten(layout.layout)};
}
constexpr SwizzledLayout group(SwizzledLayout const& layout, int begin, int end) {
  return {layout.swizzle, layout.offset, group(layout.layout, begin, end)};
}
constexpr SwizzledLayout take(SwizzledLayout const& layout, int begin, int end) {
  return {layout.swizzle, layout.offset, take(layout.layout, begin, end)};
}
template <class... Modes>
constexpr SwizzledLayout select(SwizzledLayout const& layout, Modes... modes) {
  return {layout.swizzle, layout.offset, select(layout.layout, modes...)};
}
constexpr SwizzledLayout with_shape(SwizzledLayout const& layout, Tuple const& shape) {
  return {layout.swizzle, layout.offset, with_shape(layout.layout, shape)};
}

/// The modes at which `coord` has `_`; the others move the offset. Law: slice(coord, s)(c) ==
/// s(coord with c put in).
constexpr SwizzledLayout slice(Tuple const& coord, SwizzledLayout const& layout) {
  Slice const kept = slice_and_offset(coord, layout.layout);
  return {layout.swizzle, detail::add(layout.offset, kept.offset), kept.layout};
}

constexpr SwizzledLayout logical_divide(SwizzledLayout const& layout, Tiler const& tiler) {
  return {layout.swizzle, layout.offset, logical_divide(layout.layout, tiler)};
}
constexpr SwizzledLayout zipped_divide(SwizzledLayout const& layout, Tiler const& tiler) {
  return {layout.swizzle, layout.offset, zipped_divide(layout.layout, tiler)};
}
constexpr SwizzledLayout tiled_divide(SwizzledLayout const& layout, Tiler const& tiler) {
  return {layout.swizzle, layout.offset, tiled_divide(layout.layout, tiler)};
}
constexpr SwizzledLayout flat_divide(SwizzledLayout const& layout, Tiler const& tiler) {
  return {layout.swizzle, layout.offset, flat_divide(layout.layout, tiler)};
}

/// The block's layout repeated until it has the shape, and then swizzled: how a swizzled tile is
/// made from its atom. Law: with t the plain tile_to_shape of the block's layout, the result is x
/// -> swizzle(offset + t(x)). It repeats the block's own pattern of offsets where the block's
/// cosize is a multiple of the swizzle's period.
constexpr SwizzledLayout tile_to_shape(SwizzledLayout const& block, Tuple const& shape,
                                       Tuple const& order) {
  return {block.swizzle, block.offset, tile_to_shape(block.layout, shape, order)};
}
constexpr SwizzledLayout tile_to_shape(SwizzledLayout const& block, Tuple const& shape) {
  return {block.swizzle, block.offset, tile_to_shape(block.layout, shape)};
}

/// The layout in elements of `factor` of the present ones, by Layout's law. Refused besides where
/// the swizzle reorders the elements inside a larger one, or the offset begins inside one.
constexpr SwizzledLayout upcast(SwizzledLayout const& layout, std::int64_t factor) {
  Layout const larger = upcast(layout.layout, factor);
  if (layout.offset % factor != 0)
    refuse("upcast", "the offset begins inside a larger element", layout, factor);
  return {upcast(layout.swizzle, factor), layout.offset / factor, larger};
}
constexpr SwizzledLayout downcast(SwizzledLayout const& layout, std::int64_t factor) {
  return {downcast(layout.swizzle, factor), detail::multiply(layout.offset, factor),
          downcast(layout.layout, factor)};
}
/// The layout of elements of `old_bits` as one of elements of `new_bits`; one must divide the other
/// by a power of two.
constexpr SwizzledLayout recast(SwizzledLayout const& layout, std::int64_t old_bits,
                                std::int64_t new_bits) {
  if (old_bits < 1 || new_bits < 1)
    refuse("recast", "an element has less than 1 bit", layout, old_bits, new_bits);
  if (new_bits % old_bits == 0) return upcast(layout, new_bits / old_bits);
  if (old_bits % new_bits == 0) return downcast(layout, old_bits / new_bits);
  refuse("recast", "one element width must divide the other where there is a swizzle", layout,
         old_bits, new_bits);
}

/// L(index), or L(i, j, ...) with one flat index per mode, of a swizzled layout in 32-bit
/// arithmetic unrolled over its leaves: the form for kernels. Refused at compile time if size or
/// cosize exceeds 2^31 - 1.
template <auto L, class... Indices>
requires(std::same_as<decltype(L) const, SwizzledLayout const>) TEGULA_HOST_DEVICE
    constexpr int offset_of(Indices... indices) {
  static_assert(
      L.offset <= INT32_MAX - L.layout.cosize() && L.offset >= L.layout.cosize() - INT32_MAX,
      "offset_of: offset and cosize together exceed 2^31 - 1");
  return L.swizzle(static_cast<int>(L.offset) + offset_of<L.layout>(indices...));
}

}  // namespace tegula
