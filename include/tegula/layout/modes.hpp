#pragma once

#include "tegula/layout/layout.hpp"

/// Modes as a list: group, select, take, append, prepend, replace; slices; coordinates and indices.
/// All on layouts, those that CuTe also has on tuples on tuples too. A bare leaf counts as a list
/// of one mode.
namespace tegula {

namespace detail {

template <class Tree> constexpr Tree take_modes(Tree const& tree, int begin, int end) {
  if (begin < 0 || begin >= end || end > tree.rank())
    refuse("take", "modes begin to end are not a non-empty range of the layout's", tree, begin,
           end);
  Tree result;
  for (int i = begin; i < end; ++i) append_mode(result, tree[i]);
  wrap(result);
  return result;
}

template <class Tree> constexpr Tree group_modes(Tree const& tree, int begin, int end) {
  if (begin < 0 || begin > end || end > tree.rank())
    refuse("group", "modes begin to end are not a range of the layout's", tree, begin, end);
  Tree result;
  for (int i = 0; i < tree.rank(); ++i) {
    int const first = result.count;
    if (i == begin && begin < end) {
      for (; i < end; ++i) append_mode(result, tree[i]);
      wrap(result, first);
      if (i-- == tree.rank()) break;
      continue;
    }
    append_mode(result, tree[i]);
  }
  wrap(result);
  return result;
}

template <class Tree>
constexpr Tree extend(Tree const& tree, int before, int after, Tree const& filler) {
  Tree result;
  for (int i = 0; i < before; ++i) append_mode(result, filler);
  for (int i = 0; i < tree.rank(); ++i) append_mode(result, tree[i]);
  for (int i = 0; i < after; ++i) append_mode(result, filler);
  wrap(result);
  return result;
}

template <class Tree> constexpr Tree replace_mode(Tree const& tree, int mode, Tree const& part) {
  if (mode < 0 || mode >= tree.rank())
    refuse("replace", "there is no such mode: its number is at least 0 and less than the rank",
           tree, mode);
  if (is_leaf(tree)) return part;
  Tree result;
  for (int i = 0; i < tree.rank(); ++i) append_mode(result, i == mode ? part : tree[i]);
  wrap(result);
  return result;
}

constexpr Layout one_element() {
  Layout result;
  result.append_leaf(1, {0});
  return result;
}

}  // namespace detail

/// Modes [begin, end) as a layout of their own. (CuTe: take<B, E>.)
constexpr Layout take(Layout const& layout, int begin, int end) {
  return detail::take_modes(layout, begin, end);
}
constexpr Tuple take(Tuple const& tuple, int begin, int end) {
  return detail::take_modes(tuple, begin, end);
}

/// Modes [begin, end) put into one mode, the others as they are; the same function. begin == end
/// changes nothing. (CuTe: group<B, E>.)
constexpr Layout group(Layout const& layout, int begin, int end) {
  return detail::group_modes(layout, begin, end);
}
constexpr Tuple group(Tuple const& tuple, int begin, int end) {
  return detail::group_modes(tuple, begin, end);
}

/// The layout of the named modes, in that order. (CuTe: select<Is...>.)
template <class... Modes> constexpr Layout select(Layout const& layout, Modes... modes) {
  Layout result;
  (detail::append_mode(result, layout[detail::mode_number(layout, modes)]), ...);
  detail::wrap(result);
  return detail::bounded(result);
}

/// The layout with `mode` as one more mode at its end (at its beginning).
constexpr Layout append(Layout const& layout, Layout const& mode) {
  return detail::bounded(detail::extend(layout, 0, 1, mode));
}
constexpr Layout prepend(Layout const& layout, Layout const& mode) {
  return detail::bounded(detail::extend(layout, 1, 0, mode));
}

/// The layout with modes `filler` added at its end (beginning) until it has `rank` modes; itself if
/// it has. (CuTe: append<N>.)
constexpr Layout append(Layout const& layout, int rank,
                        Layout const& filler = detail::one_element()) {
  if (rank < layout.rank())
    refuse("append", "the layout has more modes than that already", layout, rank);
  return rank == layout.rank()
             ? layout
             : detail::bounded(detail::extend(layout, 0, rank - layout.rank(), filler));
}
constexpr Layout prepend(Layout const& layout, int rank,
                         Layout const& filler = detail::one_element()) {
  if (rank < layout.rank())
    refuse("prepend", "the layout has more modes than that already", layout, rank);
  return rank == layout.rank()
             ? layout
             : detail::bounded(detail::extend(layout, rank - layout.rank(), 0, filler));
}

/// The layout with mode `mode` replaced. (CuTe: replace<N>.)
constexpr Layout replace(Layout const& layout, int mode, Layout const& part) {
  return detail::bounded(detail::replace_mode(layout, mode, part));
}

/// What a slice leaves of a layout, and the offset of its first element.
struct Slice {
  Layout layout;
  std::int64_t offset = 0;
};

namespace detail {

/// Keeps of `layout` what `coord` has `_` for (or, for dice, an index), in order; the tree of
/// `coord` may be coarser than the layout's.
constexpr Layout keep_where(Tuple const& coord, Layout const& layout, bool underscore) {
  if (coord.is_integer()) return coord.is_underscore() == underscore ? layout : Layout();
  Layout result;
  int leaf = 0;
  for (int i = 0; i < coord.count; ++i) {
    LeafRange const run = matching_leaves(coord, i, layout, leaf);
    if (run.first == run.last)
      refuse("slice", "the coordinate is not a coarsening of the layout's shape", coord, layout);
    leaf = run.last;
    if ((coord.values[i] == Tuple::kUnderscore) != underscore) continue;
    // The run with the parentheses that coord does not have itself: whole, or just those inside.
    for (int k = run.first; k < run.last; ++k) {
      int const opening = layout.open[k] - (k == run.first ? coord.open[i] : 0);
      int const closing = layout.close[k] - (k + 1 == run.last ? coord.close[i] : 0);
      result.append_leaf(layout, k, opening, closing);
    }
  }
  wrap(result);
  return result;
}

}  // namespace detail

/// The modes at which `coord` has `_`. Law: result(c) + layout(coord with 0 for _) == layout(coord
/// with c put in). A tuple of no `_` leaves ():(). `_` alone leaves the layout. (CuTe: slice.)
constexpr Layout slice(Tuple const& coord, Layout const& layout) {
  return detail::keep_where(coord, layout, true);
}

/// The modes at which `coord` has an index. (CuTe: dice.)
constexpr Layout dice(Tuple const& coord, Layout const& layout) {
  return detail::keep_where(coord, layout, false);
}

/// The slice and the offset at which it begins. (CuTe: slice_and_offset.)
constexpr Slice slice_and_offset(Tuple const& coord, Layout const& layout) {
  Tuple origin = coord;
  for (int i = 0; i < origin.count; ++i)
    origin.values[i] = coord.values[i] == Tuple::kUnderscore ? 0 : coord.values[i];
  return {slice(coord, layout), layout(origin)};
}

/// The colexicographic index of a coordinate in a shape, an offset for a layout. (CuTe: crd2idx.)
constexpr std::int64_t crd2idx(Tuple const& coord, Tuple const& shape) {
  return layout(shape)(coord);
}
constexpr std::int64_t crd2idx(Tuple const& coord, Tuple const& shape, Tuple const& stride) {
  return layout(shape, stride)(coord);
}
constexpr std::int64_t crd2idx(Tuple const& coord, Layout const& layout) { return layout(coord); }

/// The coordinate congruent with `shape` of an index, or of a coarser coordinate. Law:
/// crd2idx(result, shape) == crd2idx(coord, shape), and every integer of the result is less than
/// its extent; so the index must be in the shape. (CuTe: idx2crd.)
constexpr Tuple idx2crd(Tuple const& coord, Tuple const& shape) {
  Tuple result = layout(shape).digits_of(coord);
  for (int i = 0; i < shape.count; ++i) {
    if (result.values[i] < 0 || result.values[i] >= shape.values[i])
      refuse("idx2crd", "the index lies outside the shape", coord, shape);
    result.open.put(i, shape.open[i]);
    result.close.put(i, shape.close[i]);
  }
  return result;
}

/// The coordinate at which the layout shape:stride has offset `index`, digit by digit. Law:
/// crd2idx(result, shape, stride) == index, and every integer of the result is at least 0 and less
/// than its extent; refused where the digits of `index` are no such coordinate.
constexpr Tuple idx2crd(std::int64_t index, Tuple const& shape, Tuple const& stride) {
  Layout const inverted = layout(shape, stride);
  Tuple result = shape;
  bool inside = index >= -detail::kLargest && index <= detail::kLargest;
  for (int i = 0; i < shape.count && inside; ++i) {
    result.values[i] = stride.values[i] == 0 ? 0 : index / stride.values[i] % shape.values[i];
    inside = result.values[i] >= 0;
  }
  if (!inside || inverted(result) != index)
    refuse("idx2crd", "the digits of the index are no coordinate of shape:stride", index, shape,
           stride);
  return result;
}

}  // namespace tegula
