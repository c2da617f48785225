#pragma once

#include <string_view>

namespace tegula {

/// The name of an instruction or a tiling, kept inside the value that it names so that the value
/// stays a structural type (and an aggregate, as nvcc wants template arguments). At most 47
/// characters; what is appended past that is dropped.
struct Name {
  char text[48] = {};

  constexpr std::string_view view() const { return std::string_view(text); }

  constexpr Name& append(std::string_view s) {
    std::size_t n = view().size();
    for (std::size_t i = 0; i < s.size() && n + 1 < sizeof(text); ++i) {
      text[n++] = s[i];
    }
    return *this;
  }

  /// Appends a non-negative integer in decimal.
  constexpr Name& append(int value) {
    char digits[12] = {};
    int n = 0;
    do {
      digits[n++] = static_cast<char>('0' + value % 10);
      value /= 10;
    } while (value > 0);
    while (n > 0) {
      append(std::string_view(&digits[--n], 1));
    }
    return *this;
  }

  friend constexpr bool operator==(Name const& a, Name const& b) { return a.view() == b.view(); }
};

}  // namespace tegula
