#pragma once

/// The configurations that this build has: the representative ones, and the others where
/// TEGULA_CONFIGURATIONS is `all`. Only what lists them includes this file, so that the kernels' own objects
/// are the same in both builds.

#include <algorithm>
#include <array>
#include <cstddef>
#include <type_traits>
#include <vector>

#include "family.hpp"

namespace tegula::device {

/// The last unit of a family that this build has.
inline constexpr int kLastUnit = TEGULA_ALL_CONFIGURATIONS ? kUnits : 0;

/// Indices into the family's table. The number of a configuration is its place here, not the index, which
/// only names of kernels hold.
template <Family F> inline constexpr auto const& kBuiltIndices = kIndices<F, 0, kLastUnit>;

/// The configurations by number.
template <Family F>
inline constexpr auto kBuiltConfigurations = [] {
  using Config = std::remove_cvref_t<decltype(table<F>()[0])>;
  std::array<Config, kBuiltIndices<F>.size()> built{};
  std::ranges::transform(kBuiltIndices<F>, built.begin(), [](int i) { return table<F>()[i]; });
  return built;
}();

/// How many.
constexpr std::size_t configurations(Family family) {
  constexpr std::array counts = {kBuiltIndices<Family::attention_sm80>.size(),
                                 kBuiltIndices<Family::gemm_sm80>.size(),
                                 kBuiltIndices<Family::gemm_sm90>.size()};
  return counts[static_cast<std::size_t>(family)];
}

/// What a back end has of every kernel: an Entry by family and number.
template <class Entry> class KernelTables {
 public:
  /// make<F>() gives the kernels of a family, a vector by number.
  template <class Make>
  explicit KernelTables(Make make)
      : tables_{make.template operator()<Family::attention_sm80>(),
                make.template operator()<Family::gemm_sm80>(),
                make.template operator()<Family::gemm_sm90>()} {}

  /// Throws std::out_of_range.
  Entry const& at(Family family, int configuration) const {
    return tables_[static_cast<std::size_t>(family)].at(static_cast<std::size_t>(configuration));
  }
  /// A number of its own for each kernel, below size().
  static std::size_t number(Family family, int configuration) {
    std::size_t n = static_cast<std::size_t>(configuration);
    for (Family const before : kFamilies)
      if (before < family) n += configurations(before);
    return n;
  }
  static constexpr std::size_t size() {
    std::size_t n = 0;
    for (Family const family : kFamilies) n += configurations(family);
    return n;
  }

 private:
  std::array<std::vector<Entry>, kFamilies.size()> tables_;
};

}  // namespace tegula::device
