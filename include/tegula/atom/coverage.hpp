#pragma once

#include <cstdint>

#include "tegula/layout/layout.hpp"

namespace tegula {

namespace detail {
/// The end of the interval [0, end) that the layout's leaves along an axis (`axes`: 0 for the
/// integers, k + 1 for axis k) tile without gap or overlap: by increasing stride, each stride is
/// the product of the extents before it.
constexpr std::int64_t tiled_interval(Layout const& layout, int axes) {
  std::int64_t reached = 1;
  for (bool grown = true; grown;) {
    grown = false;
    for (int i = 0; i < layout.count && !grown; ++i) {
      grown = layout.axes[i] == axes && layout.strides[i] == reached && layout.extents[i] > 1;
      if (grown) reached *= layout.extents[i];
    }
  }
  return reached;
}
}  // namespace detail

/// Whether the layout's values over its domain are exactly 0 .. elements-1, each once: a (thread,
/// value) layout that covers a tile without overlap, or a permutation. Exact for strides that are
/// not negative; with one that is, the answer is false.
constexpr bool covers_once(Layout const& layout, std::int64_t elements) {
  return detail::tiled_interval(layout, 0) == elements && layout.size() == elements;
}
/// The same of a layout of coordinates: whether it visits each coordinate of a box once.
constexpr bool covers_once(Layout const& coordinates, Tuple const& box) {
  for (int axis = 0; axis < box.count; ++axis) {
    if (detail::tiled_interval(coordinates, axis + 1) != box.values[axis]) return false;
  }
  return coordinates.size() == box.size();
}

/// Whether the layout's values are exactly 0 .. elements-1, each at least once, repeated only along
/// leaves of stride 0 (several threads that hold the same element).
constexpr bool covers_with_repeats(Layout const& layout, std::int64_t elements) {
  Layout moving = layout;
  for (int i = 0; i < moving.leaves(); ++i) {
    if (moving.strides[i] == 0) {
      moving.extents[i] = 1;
    }
  }
  return covers_once(moving, elements);
}

}  // namespace tegula
