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

/// Component `Axis` of the coordinate that a layout of coordinates has at a flat index, in 32-bit arithmetic
/// that folds to shifts, masks and constants where extents are powers of two and the index is known after
/// unrolling.
template <Layout L, int Axis> TEGULA_HOST_DEVICE constexpr int coordinate_of(int index) {
  int result = 0;
  [&]<int... I>(std::integer_sequence<int, I...>) {
    auto const leaf = [&]<int K>(std::integral_constant<int, K>) {
      constexpr int extent = static_cast<int>(L.extents[K]);
      if constexpr (L.axes[K] == Axis + 1) {
        result += (K + 1 == L.count ? index : index % extent) * static_cast<int>(L.strides[K]);
      }
      index /= extent;
    };
    (leaf(std::integral_constant<int, I>{}), ...);
  }
  (std::make_integer_sequence<int, L.count>{});
  return result;
}

/// The same layout of coordinates with axes 0 and 1 exchanged.
constexpr Layout swap_axes(Layout coordinates) {
  for (int i = 0; i < coordinates.count; ++i) {
    if (coordinates.axes[i] != 0) coordinates.axes[i] = static_cast<std::int8_t>(3 - coordinates.axes[i]);
  }
  return coordinates;
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
