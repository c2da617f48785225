#pragma once

/// The configurations whose kernels are in this build: of the families that TEGULA_FAMILIES names
/// the representative ones, and the others where TEGULA_CONFIGURATIONS is `all`. Only what lists
/// them includes this file, so that the kernels' own objects are the same in all builds.

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <utility>
#include <vector>

#include "tegula/device/family.hpp"
#include "units.hpp"

namespace tegula::device {

/// Whether a family is one of these values.
template <KernelFamily F, KernelFamily... Some> constexpr bool is_among(Some...) {
  return (std::same_as<F, Some> || ...);
}

/// This build has a family's units before this one.
template <KernelFamily F>
inline constexpr int kEndUnit = !is_among<F>(TEGULA_BUILT_FAMILIES) ? 0
                                : TEGULA_ALL_CONFIGURATIONS         ? kUnits + 1
                                                                    : 1;

/// Indices into the family's table of those, and of the others.
template <KernelFamily F>
inline constexpr auto const& kBuiltIndices = kIndices<F, 0, kEndUnit<F> - 1>;
template <KernelFamily F>
inline constexpr auto const& kOtherIndices = kIndices<F, kEndUnit<F>, kUnits>;

/// All indices, those that are built first. The number of a configuration is its place here, not
/// the index, which only names of kernels hold.
template <KernelFamily F>
inline constexpr auto kAllIndices = [] {
  std::array<int, kBuiltIndices<F>.size() + kOtherIndices<F>.size()> all{};
  std::ranges::copy(kOtherIndices<F>, std::ranges::copy(kBuiltIndices<F>, all.begin()).out);
  return all;
}();

/// The configurations by number. Copied into place: clang 14 makes no constant of a default
/// configuration whose members begin with others' values.
template <KernelFamily F>
inline constexpr auto kAllConfigurations = []<std::size_t... I>(std::index_sequence<I...>) {
  return std::array<typename F::Config, sizeof...(I)>{F::table[kAllIndices<F>[I]]...};
}
(std::make_index_sequence<kAllIndices<F>.size()>());

/// What a back end has of every kernel: an Entry by family and number.
template <class Entry> class KernelTables {
 public:
  /// make(family) gives the kernels of a family, a vector by number.
  template <class Make> explicit KernelTables(Make make) {
    Families::for_each([&](auto family) { table(family) = make(family); });
  }

  /// Throws std::out_of_range.
  Entry& at(FamilyId family, int number) {
    return table(family).at(static_cast<std::size_t>(number));
  }

 private:
  std::vector<Entry>& table(FamilyId family) {
    return tables_[static_cast<std::size_t>(family.index())];
  }

  std::array<std::vector<Entry>, Families::size> tables_;
};

}  // namespace tegula::device
