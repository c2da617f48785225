#pragma once

#include <cstdint>
#include <utility>

#include "tegula/layout/layout.hpp"
#include "tegula/macros.hpp"

namespace tegula {

/// A layout of one leaf whose stride runs along an axis of a tile: the building block of layouts of
/// coordinates.
constexpr Layout along(int axis, std::int64_t extent, std::int64_t step) {
  Layout leaf;
  leaf.append_leaf(extent, {step, axis});
  return leaf;
}

/// Whether a layout of coordinates visits each coordinate of a box exactly once: along every axis its leaves,
/// sorted by stride, must tile [0, extent) without gap or overlap. Sufficient, and for leaves along single
/// axes necessary.
constexpr bool covers_once(Layout const& coordinates, Tuple const& box) {
  for (int axis = 0; axis < box.count; ++axis) {
    std::int64_t reached = 1;
    for (bool grown = true; grown;) {
      grown = false;
      for (int i = 0; i < coordinates.count; ++i) {
        if (coordinates.axes[i] == axis + 1 && coordinates.strides[i] == reached &&
            coordinates.extents[i] > 1) {
          reached *= coordinates.extents[i];
          grown = true;
          break;
        }
      }
    }
    if (reached != box.values[axis]) return false;
  }
  return coordinates.size() == box.size();
}

}  // namespace tegula
