#include "options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>
#include <vector>

#include "tegula/io/text.hpp"

namespace tegula::tool {
namespace {

using io::in_quotes;

/// The number that all of `text` spells, if it spells one that the type holds.
template <class Number> std::optional<Number> spelled(std::string_view text) {
  Number value{};
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// The finite f32 that the text spells. Of a text such as 1e-46, which rounds to 0, none.
std::optional<float> real(std::string const& text) {
  auto const value = spelled<float>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

}  // namespace

CLI::Validator whole_number(std::int64_t least, std::int64_t most) {
  return CLI::Validator(
      [least, most](std::string& text) {
        auto const value = spelled<std::int64_t>(text);
        if (value && *value >= least && *value <= most) return std::string();
        if (most == std::numeric_limits<std::int64_t>::max())
          return fmt::format("{} is not a whole number of at least {}", in_quotes(text), least);
        return fmt::format("{} is not a whole number from {} to {}", in_quotes(text), least, most);
      },
      fmt::format(">= {}", least));
}

CLI::Validator seed_number() {
  return CLI::Validator(
      [](std::string& text) {
        if (spelled<std::uint64_t>(text)) return std::string();
        return fmt::format("{} is not a whole number from 0 to 2^64 - 1", in_quotes(text));
      },
      "0 to 2^64 - 1");
}

CLI::Validator real_number() {
  return CLI::Validator(
      [](std::string& text) {
        if (real(text)) return std::string();
        return fmt::format("{} is not a finite number that f32 holds (0, or from 1.4e-45 to 3.4e38 in size)",
                           in_quotes(text));
      },
      "NUMBER");
}

CLI::Validator positive_number() {
  return CLI::Validator(
      [](std::string& text) {
        if (real(text).value_or(0) > 0) return std::string();
        return fmt::format("{} is not a finite number above 0 that f32 holds", in_quotes(text));
      },
      "> 0");
}

CLI::Validator not_empty(std::string const& what) {
  return CLI::Validator(
      [what](std::string& text) { return text.empty() ? "'' is not " + what : std::string(); }, "TEXT");
}
CLI::Validator file_name() { return not_empty("the name of a file"); }

CLI::Validator one_of(std::initializer_list<char const*> words) {
  std::vector<std::string> const known(words.begin(), words.end());
  std::string const list = fmt::format("{}", fmt::join(known, ", "));
  return CLI::Validator(
      [known, list](std::string& text) {
        if (std::find(known.begin(), known.end(), text) != known.end()) return std::string();
        return fmt::format("{} is not one of {}", in_quotes(text), list);
      },
      "{" + fmt::format("{}", fmt::join(known, ",")) + "}");
}

std::optional<Extents> read_extents(std::string const& text) {
  auto const cross = text.find('x');
  if (cross == std::string::npos) return std::nullopt;
  auto const first = spelled<int>(std::string_view(text).substr(0, cross));
  auto const second = spelled<int>(std::string_view(text).substr(cross + 1));
  if (!first || !second || *first < 1 || *second < 1) return std::nullopt;
  return Extents{*first, *second};
}

CLI::Option* add_text(CLI::App& command, std::string const& name, std::optional<std::string>& text,
                      std::string const& description) {
  return command.add_option_function<std::string>(
      name, [&text](std::string const& given) { text = given; }, description);
}

void add_drawing_option(CLI::App& command, std::string const& name, std::string& path,
                        std::string const& description) {
  command.add_option(name, path, description)->expected(0, 1)->default_str("-")->option_text("[FILE]");
}

}  // namespace tegula::tool
