#pragma once

/// The configurations that this build has: the representative ones, and the others where
/// TEGULA_CONFIGURATIONS is `all`. Only what lists them includes this file, so that the kernels'
/// own objects are the same in both builds.

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "tegula/device/family.hpp"
#include "units.hpp"

namespace tegula::device {

/// The last unit of a family that this build has.
inline constexpr int kLastUnit = TEGULA_ALL_CONFIGURATIONS ? kUnits : 0;

/// Indices into the family's table. The number of a configuration is its place here, not the index,
/// which only names of kernels hold.
template <KernelFamily F> inline constexpr auto const& kBuiltIndices = kIndices<F, 0, kLastUnit>;

/// The configurations by number.
template <KernelFamily F>
inline constexpr auto kBuiltConfigurations = [] {
  std::array<typename F::Config, kBuiltIndices<F>.size()> built{};
  std::ranges::transform(kBuiltIndices<F>, built.begin(), [](int i) { return F::table[i]; });
  return built;
}();

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
