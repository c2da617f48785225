#pragma once

#include <concepts>
#include <type_traits>

#include "tegula/layout/tuple.hpp"
#include "tegula/macros.hpp"

namespace tegula {

/// A coordinate at run time: one integer for each axis of a space.
template <int Rank> struct Coordinate {
  int at[Rank];

  TEGULA_HOST_DEVICE constexpr int operator[](int axis) const { return at[axis]; }
  TEGULA_HOST_DEVICE constexpr Coordinate operator+(Coordinate const& other) const {
    Coordinate sum = *this;
    for (int axis = 0; axis < Rank; ++axis) sum.at[axis] += other.at[axis];
    return sum;
  }
};
template <class... I> Coordinate(I...) -> Coordinate<static_cast<int>(sizeof...(I))>;

/// A run-time base and a step that is known after unrolling. A comparison with a limit keeps them
/// apart, so that `limit - base` is computed once for all steps.
struct Index {
  int base;
  int step;

  TEGULA_HOST_DEVICE constexpr operator int() const { return base + step; }
  TEGULA_HOST_DEVICE friend constexpr bool operator<(Index i, int limit) {
    return i.step < limit - i.base;
  }
  TEGULA_HOST_DEVICE friend constexpr bool operator>=(Index i, int limit) {
    return i.step >= limit - i.base;
  }
};

/// How many tiles of `tile` cover `extent`; both positive. (CuTe: ceil_div.)
TEGULA_HOST_DEVICE constexpr int ceil_div(int extent, int tile) {
  return (extent + tile - 1) / tile;
}

/// What a tensor is indexed by: an integer, or `_` for "the whole mode".
template <class I>
concept TensorIndex = std::is_convertible_v<I, int> || std::same_as<I, Underscore>;

}  // namespace tegula
