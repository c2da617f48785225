#pragma once

/// The families of kernels that a back end can launch, one for each table of kernel/configurations.hpp, and
/// the translation units that their configurations are compiled in for the simulated machine.

#include <algorithm>
#include <array>
#include <cstddef>

#include "representative.hpp"
#include "tegula/kernel/configurations.hpp"

namespace tegula::device {

enum class Family { attention_sm80, gemm_sm80, gemm_sm90 };

inline constexpr std::array kFamilies = {Family::attention_sm80, Family::gemm_sm80, Family::gemm_sm90};

/// The family's table of kernel/configurations.hpp. Everything here counts it, so that its size stands
/// nowhere else.
template <Family F> constexpr auto const& table() {
  if constexpr (F == Family::attention_sm80) {
    return attention_sm80_configs;
  } else if constexpr (F == Family::gemm_sm80) {
    return gemm_sm80_configs;
  } else {
    return gemm_sm90_configs;
  }
}

/// For the simulated machine a family is compiled in translation units 0 to kUnits, for what its kernels
/// include is then parsed once a unit. Unit 0 holds the representative configurations, which every build has;
/// the others are dealt to units 1 to kUnits.
inline constexpr int kUnits = 6;

/// The unit of each configuration of a family.
template <Family F> constexpr auto units() {
  std::array<int, table<F>().count> unit{};
  int others = 0;
  for (std::size_t i = 0; i < unit.size(); ++i)
    unit[i] = is_representative(table<F>()[static_cast<int>(i)]) ? 0 : 1 + others++ % kUnits;
  return unit;
}

/// The indices into the family's table of the configurations of units First to Last, ascending.
template <Family F, int First, int Last>
inline constexpr auto kIndices = [] {
  constexpr auto unit = units<F>();
  constexpr auto chosen = [](int u) { return First <= u && u <= Last; };
  std::array<int, std::ranges::count_if(unit, chosen)> found{};
  for (std::size_t i = 0, n = 0; i < unit.size(); ++i)
    if (chosen(unit[i])) found[n++] = static_cast<int>(i);
  return found;
}();

}  // namespace tegula::device
