#pragma once

/// The families of kernels that a back end can launch: one for each table of kernel/configurations.hpp.

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "tegula/kernel/configurations.hpp"

namespace tegula::device {

enum class Family { attention_sm80, gemm_sm80, gemm_sm90 };

inline constexpr std::array kFamilies = {Family::attention_sm80, Family::gemm_sm80, Family::gemm_sm90};

/// Configurations in the family's table.
constexpr int configurations(Family family) {
  constexpr std::array counts = {attention_sm80_configs.count, gemm_sm80_configs.count,
                                 gemm_sm90_configs.count};
  return counts[static_cast<std::size_t>(family)];
}

static_assert(configurations(Family::attention_sm80) == TEGULA_ATTENTION_SM80_CONFIGURATIONS &&
                  configurations(Family::gemm_sm80) == TEGULA_GEMM_SM80_CONFIGURATIONS &&
                  configurations(Family::gemm_sm90) == TEGULA_GEMM_SM90_CONFIGURATIONS,
              "src/device/CMakeLists.txt must say how many configurations kernel/configurations.hpp has");

/// What a back end has of every kernel: Entry by family and configuration, each made by make<family,
/// index>().
template <class Entry> class KernelTables {
 public:
  template <class Make> explicit KernelTables(Make make) {
    fill<Family::attention_sm80>(make);
    fill<Family::gemm_sm80>(make);
    fill<Family::gemm_sm90>(make);
  }

  /// Throws std::out_of_range.
  Entry const& at(Family family, int configuration) const {
    return tables_[static_cast<std::size_t>(family)].at(static_cast<std::size_t>(configuration));
  }
  /// A number of its own for each kernel, below size().
  static std::size_t number(Family family, int configuration) {
    std::size_t n = static_cast<std::size_t>(configuration);
    for (Family const before : kFamilies)
      if (before < family) n += static_cast<std::size_t>(configurations(before));
    return n;
  }
  static constexpr std::size_t size() {
    std::size_t n = 0;
    for (Family const family : kFamilies) n += static_cast<std::size_t>(configurations(family));
    return n;
  }

 private:
  template <Family F, class Make> void fill(Make& make) {
    [&]<int... I>(std::integer_sequence<int, I...>) {
      tables_[static_cast<std::size_t>(F)] = {make.template operator()<F, I>()...};
    }
    (std::make_integer_sequence<int, configurations(F)>());
  }

  std::array<std::vector<Entry>, kFamilies.size()> tables_;
};

}  // namespace tegula::device
