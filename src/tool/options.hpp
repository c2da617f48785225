#pragma once

/// How options are read: strictly, and with "not given" told apart from zero and from empty.

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>

namespace CLI {
class App;
class Option;
class Validator;
}  // namespace CLI

namespace tegula::tool {

/// What an option accepts, with a sentence for what it does not: a whole number from `least` to `most`, ...
CLI::Validator whole_number(std::int64_t least, std::int64_t most = std::numeric_limits<std::int64_t>::max());
/// ... a number from 0 to 2^64 - 1, ...
CLI::Validator seed_number();
/// ... a finite number that f32 holds: not one so small that it would be 0, ...
CLI::Validator real_number();
/// ... such a number above 0, ...
CLI::Validator positive_number();
/// ... any text but the empty one, which is not `what`, ...
CLI::Validator not_empty(std::string const& what);
CLI::Validator file_name();
/// ... one of these words.
CLI::Validator one_of(std::initializer_list<char const*> words);

/// Two whole numbers of at least 1, "128x256".
struct Extents {
  int first, second;
};
std::optional<Extents> read_extents(std::string const& text);

/// Adds an option whose text is kept as it was given: present also where it is empty.
CLI::Option* add_text(CLI::App& command, std::string const& name, std::optional<std::string>& text,
                      std::string const& description);

/// Adds `--name [FILE]`, which sets `path` to the file, or to "-" where none is given.
void add_drawing_option(CLI::App& command, std::string const& name, std::string& path,
                        std::string const& description);

}  // namespace tegula::tool
