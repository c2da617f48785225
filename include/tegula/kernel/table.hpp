#pragma once

#include "tegula/atom/mma_spec.hpp"

namespace tegula::detail {

/// The configurations of a family, by number.
template <class Config, int N> struct Table {
  static constexpr int count = N;
  Config values[N] = {};
  constexpr Config const& operator[](int i) const { return values[i]; }
  constexpr Config const* begin() const { return values; }
  constexpr Config const* end() const { return values + N; }
};

/// The table of what list(add) adds, by calling add(configuration) for each. Precondition: list
/// captures nothing.
template <class Config, class List> constexpr auto table_of(List) {
  constexpr int count = [] {
    int n = 0;
    List{}([&](Config const&) { ++n; });
    return n;
  }();
  Table<Config, count> table;
  int i = 0;
  List{}([&](Config const& c) { table.values[i++] = c; });
  return table;
}

/// Of A and of B.
struct Majors {
  Major a, b;
};

}  // namespace tegula::detail
