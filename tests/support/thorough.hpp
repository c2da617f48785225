#pragma once

#include <cstdint>
#include <cstdlib>
#include <string_view>

/// How much of a long test is run. `./run test` runs a part, spread evenly over the whole;
/// `./run nightly` sets TEGULA_TEST_THOROUGH=1 and runs all of it.
namespace tegula {

inline bool thorough() {
  static bool const all = [] {
    char const* const text = std::getenv("TEGULA_TEST_THOROUGH");
    return text != nullptr && std::string_view(text) == "1";
  }();
  return all;
}

/// Whether case `index` of a long test is run: every one where the test is to be thorough, else one
/// in `n`.
inline bool chosen(std::int64_t index, int n) { return thorough() || index % n == 0; }

/// `all` where the test is to be thorough, else `few`: how many random cases it draws.
inline int thorough_or(int all, int few) { return thorough() ? all : few; }

}  // namespace tegula
