#pragma once

/// The translation units that the configurations of a family are compiled in for the
/// simulated machine.

#include <algorithm>
#include <array>
#include <cstddef>

#include "tegula/kernel/configurations.hpp"

namespace tegula::device {

/// For the simulated machine a family is compiled in translation units 0 to kUnits, for what its
/// kernels include is then parsed once a unit. Unit 0 holds the representative configurations,
/// which every build has; the others are dealt to units 1 to kUnits.
inline constexpr int kUnits = 6;

/// A family has at most so many representative configurations, so that a quick build stays one.
inline constexpr int kMostRepresentative = 24;

/// Of each family so many representative configurations are compiled for a GPU by `./run test`,
/// which looks at what nvcc makes of them; `./run nightly` looks at all.
inline constexpr int kSampled = 2;

/// The unit of each configuration of a family.
template <KernelFamily F> constexpr auto units() {
  std::array<int, F::table.count> unit{};
  int others = 0;
  for (std::size_t i = 0; i < unit.size(); ++i)
    unit[i] = F::is_representative(F::table[static_cast<int>(i)]) ? 0 : 1 + others++ % kUnits;
  return unit;
}

/// Whether each configuration of a family is one of the kSampled: spread evenly over the
/// representative ones, the last of them included.
template <KernelFamily F> constexpr auto sampled() {
  constexpr auto unit = units<F>();
  int const all = static_cast<int>(std::ranges::count(unit, 0));
  std::array<bool, unit.size()> chosen{};
  for (std::size_t i = 0, n = 0; i < unit.size(); ++i) {
    if (unit[i] != 0) continue;
    int const before = static_cast<int>(n++) * kSampled / all;
    chosen[i] = static_cast<int>(n) * kSampled / all > before;
  }
  return chosen;
}

/// The indices into the family's table of the configurations of units First to Last, ascending.
template <KernelFamily F, int First, int Last>
inline constexpr auto kIndices = [] {
  constexpr auto unit = units<F>();
  static_assert(std::ranges::count(unit, 0) <= kMostRepresentative,
                "is_representative admits more than kMostRepresentative configurations");
  constexpr auto chosen = [](int u) { return First <= u && u <= Last; };
  std::array<int, std::ranges::count_if(unit, chosen)> found{};
  for (std::size_t i = 0, n = 0; i < unit.size(); ++i)
    if (chosen(unit[i])) found[n++] = static_cast<int>(i);
  return found;
}();

}  // namespace tegula::device
