#pragma once

#include <cstdint>

#include "tegula/layout/layout.hpp"

namespace tegula {

/// A layout of one leaf whose stride runs along an axis of a tile: the building block of layouts of
/// coordinates.
constexpr Layout along(int axis, std::int64_t extent, std::int64_t step) {
  Layout leaf;
  leaf.append_leaf(extent, {step, axis});
  return leaf;
}

}  // namespace tegula
