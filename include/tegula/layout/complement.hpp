#pragma once

#include "tegula/layout/coalesce.hpp"

namespace tegula {

namespace detail {

/// Sorts the leaves of a flat layout by stride; equal strides keep their order. `order`, where
/// given, is permuted along.
constexpr void sort_by_stride(Layout& flat, std::int64_t* order = nullptr) {
  for (int i = 1; i < flat.count; ++i) {
    for (int k = i; k > 0 && flat.strides[k] < flat.strides[k - 1]; --k) {
      std::int64_t const extent = flat.extents[k];
      std::int64_t const stride = flat.strides[k];
      flat.extents[k] = flat.extents[k - 1];
      flat.strides[k] = flat.strides[k - 1];
      flat.extents[k - 1] = extent;
      flat.strides[k - 1] = stride;
      if (order == nullptr) continue;
      std::int64_t const moved = order[k];
      order[k] = order[k - 1];
      order[k - 1] = moved;
    }
  }
}

/// The leaves of `layout` that move (extent above 1, stride not 0), coalesced, as an unwrapped list
/// sorted by stride. order[i] receives the index that leaf i of the list counts in the flat index
/// of `layout`: the product of the extents before it.
constexpr Layout moving_leaves(Layout const& layout, std::int64_t* order) {
  Layout flat;
  std::int64_t below = 1;
  for (int i = 0; i < layout.count; ++i) {
    int const before = flat.count;
    if (layout.strides[i] == 0 && layout.extents[i] > 1) {
      // A broadcast leaf breaks a run: the leaves around it do not merge, since the index between
      // them does not move.
      flat.append_leaf(layout.extents[i], {0});
    } else {
      append_coalesced(flat, layout.extents[i], layout.stride(i));
    }
    if (flat.count > before) order[before] = below;
    below *= layout.extents[i];
  }
  Layout moving;
  for (int i = 0; i < flat.count; ++i) {
    if (flat.strides[i] == 0) continue;
    order[moving.count] = order[i];
    moving.append_leaf(flat.extents[i], flat.stride(i));
  }
  sort_by_stride(moving, order);
  return moving;
}

}  // namespace detail

/// The layout that fills what `layout` leaves out of [0, cotarget). Law: let F = filter(layout).
/// Then make_layout(F, result) is a bijection onto [0, N), N = size(F) * size(result), where N is
/// the least possible that is at least cotarget; and result's strides are positive and increase,
/// which makes result unique. (CuTe: complement; it also accepts layouts for which this fails.)
///
/// Refused exactly where no layout does that: F's strides, sorted, must be positive and each a
/// multiple of the run (stride times extent) of the one before; in particular F must be injective.
constexpr Layout complement(Layout const& layout, std::int64_t cotarget) {
  Layout flat = filter(layout);
  if (flat.has_axes())
    refuse("complement", "the layout's values are coordinates, not integers", layout, cotarget);
  detail::sort_by_stride(flat);
  Layout result;
  std::int64_t run = 1;
  for (int i = 0; i < flat.count && flat.extents[i] > 1; ++i) {
    if (flat.strides[i] < 0)
      refuse("complement", "a stride is negative, so the layout leaves [0, cotarget)", layout,
             cotarget);
    if (flat.strides[i] % run != 0)
      refuse("complement", "a stride is no multiple of the run below it, so nothing fills the gap",
             layout, cotarget);
    detail::append_coalesced(result, flat.strides[i] / run, {run});
    run = detail::multiply(flat.extents[i], flat.strides[i]);
  }
  detail::append_coalesced(result, cotarget <= run ? 1 : (cotarget - 1) / run + 1, {run});
  detail::finish_flat(result);
  return detail::bounded(result);
}

/// The complement in the layout's own span: cotarget = cosize(filter(layout)), as in CuTe.
constexpr Layout complement(Layout const& layout) {
  if (layout.has_axes())
    refuse("complement", "the layout's values are coordinates, not integers", layout);
  return complement(layout, filter(layout).cosize());
}

/// The layout that finds the index of an offset, for as long as offsets are contiguous. Law:
/// layout(result(i)) == i for 0 <= i < size(result). The result follows the chain of runs that
/// starts at stride 1: leaf after leaf of the coalesced layout, each with the stride that the chain
/// has reached; it stops where no leaf of the coalesced layout has that stride. Where leaves
/// overlap, parts of a leaf might go on from there; whole leaves are followed, as CuTe does, so
/// that layouts which are one function have one inverse: of (4,2,3):(1,2,4), which is
/// (4,6):(1,2), it is 4:1. Never refused for integer strides: 1:0 if no leaf has stride 1. (CuTe:
/// right_inverse.)
constexpr Layout right_inverse(Layout const& layout) {
  if (layout.has_axes())
    refuse("right_inverse", "the layout's values are coordinates, not integers", layout);
  std::int64_t index[kMaxLeaves] = {};
  Layout const moving = detail::moving_leaves(layout, index);
  Layout result;
  std::int64_t reached = 1;
  for (int i = 0; i < moving.count; ++i) {
    if (moving.strides[i] != reached) continue;
    detail::append_coalesced(result, moving.extents[i], {index[i]});
    reached = detail::multiply(moving.extents[i], reached);
  }
  detail::finish_flat(result);
  return result;
}

/// The layout that finds the index of every offset of `layout`. Law: layout(result(layout(i))) ==
/// layout(i) for 0 <= i < size(layout); where layout is injective, result(layout(i)) == i. (CuTe:
/// left_inverse, there called a quasi-inverse since leaves of stride 0 are allowed.)
///
/// Sufficient condition, and what is refused: the moving leaves, sorted by stride, have positive
/// strides, each a multiple of the stride and at least the run (stride times extent) of the one
/// before. Then digit after digit of an offset is an index. Less will do for a few layouts, such as
/// (2,2):(2,3), whose inverse is not digit by digit; they are refused too, and so is a layout whose
/// inverse would have a size beyond 2^62.
constexpr Layout left_inverse(Layout const& layout) {
  if (layout.has_axes())
    refuse("left_inverse", "the layout's values are coordinates, not integers", layout);
  std::int64_t index[kMaxLeaves] = {};
  Layout const moving = detail::moving_leaves(layout, index);
  Layout result;
  std::int64_t below = 1;
  for (int i = 0; i < moving.count; ++i) {
    std::int64_t const stride = moving.strides[i];
    if (stride < 0)
      refuse("left_inverse", "a stride is negative, and no layout has negative indices", layout);
    std::int64_t const run =
        i == 0 ? 1 : detail::multiply(moving.strides[i - 1], moving.extents[i - 1]);
    if (stride < run)
      refuse("left_inverse", "two leaves overlap, so an offset belongs to several indices", layout);
    if (stride % below != 0)
      refuse("left_inverse", "a stride is no multiple of the one below, so an offset has no digits",
             layout);
    detail::append_coalesced(result, stride / below, {i == 0 ? 0 : index[i - 1]});
    below = stride;
  }
  if (moving.count > 0)
    detail::append_coalesced(result, moving.extents[moving.count - 1], {index[moving.count - 1]});
  detail::finish_flat(result);
  return detail::bounded(result);
}

/// The indices that `layout` sends to offset 0 because its leaves there have stride 0. Law:
/// layout(result(i)) == 0 for 0 <= i < size(result), result is injective, and size(result) ==
/// size(layout) / size(filter(layout)). (CuTe: nullspace.)
constexpr Layout nullspace(Layout const& layout) {
  Layout result;
  std::int64_t below = 1;
  for (int i = 0; i < layout.count; ++i) {
    if (layout.strides[i] == 0 && layout.extents[i] > 1)
      result.append_leaf(layout.extents[i], {below});
    below *= layout.extents[i];
  }
  detail::finish_flat(result);
  return result;
}

}  // namespace tegula
