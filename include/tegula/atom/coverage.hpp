#pragma once

#include <cstdint>

#include "tegula/layout/layout.hpp"

namespace tegula {

/// Whether the layout's values over its domain are exactly 0 .. elements-1, each once: a (thread, value)
/// layout that covers a tile without overlap, or a permutation. Exact for strides that are not negative (with
/// one that is, the answer is false): such a sum of progressions tiles an interval only if, by increasing
/// stride, each stride is the product of the extents before it.
constexpr bool covers_once(Layout const& layout, std::int64_t elements) {
  bool used[kMaxLeaves] = {};
  std::int64_t covered = 1;
  for (int found = 0; found < layout.leaves();) {
    int next = -1;
    for (int i = 0; i < layout.leaves() && next < 0; ++i) {
      if (!used[i] && (layout.extents[i] == 1 || (layout.strides[i] == covered && layout.axes[i] == 0))) {
        next = i;
      }
    }
    if (next < 0) {
      return false;
    }
    used[next] = true;
    covered *= layout.extents[next];
    ++found;
  }
  return covered == elements;
}

/// Whether the layout's values are exactly 0 .. elements-1, each at least once, repeated only along leaves of
/// stride 0 (several threads that hold the same element).
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
