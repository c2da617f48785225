#pragma once

/// How options are read: strictly, and with "not given" told apart from zero and from empty.

#include <charconv>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "command_line.hpp"

namespace tegula::tool {

/// The number that all of `text` spells, if it spells one that the type holds: a whole number in
/// decimal digits, so that 016 is sixteen, and -0 none.
template <class Number> std::optional<Number> spelled(std::string_view text) {
  Number value{};
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (std::integral<Number> && value == 0 && text.starts_with('-')) return std::nullopt;
  return value;
}

/// What an option accepts, with a sentence for what it does not: a whole number from `least` to
/// `most`, ...
Accepted whole_number(std::int64_t least,
                      std::int64_t most = std::numeric_limits<std::int64_t>::max());
/// ... a multiple of `of` from `least` to `most`, or `also`, ...
Accepted multiple(std::int64_t of, std::int64_t least, std::int64_t most,
                  std::optional<std::int64_t> also = std::nullopt);
/// ... a number from 0 to 2^64 - 1, ...
Accepted seed_number();
/// ... a finite number that f32 holds: not one so small that it would be 0, ...
Accepted real_number();
/// ... a number from 2^least to 2^most, ...
Accepted power_of_two_range(int least, int most);
/// ... any text but the empty one, which is not `what`, ...
Accepted not_empty(std::string const& what);
Accepted file_name();
/// ... likewise, and not "-", where that is not standard output, ...
Accepted own_file_name();
/// ... the name of a folder that exists, ...
Accepted folder_name();
/// ... one of these words.
Accepted one_of(std::initializer_list<char const*> words);

/// Two whole numbers of at least 1, "128x256".
struct Extents {
  int first, second;
};
std::optional<Extents> read_extents(std::string const& text);

/// Whole numbers of at least 0 with commas between them, "300,0,17", from `least` to `most` in all.
std::optional<std::vector<std::int64_t>> read_list(std::string_view text, std::int64_t least,
                                                   std::int64_t most);

}  // namespace tegula::tool
