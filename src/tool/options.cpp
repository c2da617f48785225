#include "options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <vector>

#include "tegula/io/text.hpp"

namespace tegula::tool {
namespace {

using io::in_quotes;

/// The finite f32 that the text spells. Of a text such as 1e-46, which rounds to 0, none.
std::optional<float> real(std::string const& text) {
  auto const value = spelled<float>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

}  // namespace

Accepted whole_number(std::int64_t least, std::int64_t most) {
  return Accepted{
      [least, most](std::string const& text) {
        auto const value = spelled<std::int64_t>(text);
        if (value && *value >= least && *value <= most) return std::string();
        if (most == std::numeric_limits<std::int64_t>::max())
          return fmt::format("{} is not a whole number of at least {}", in_quotes(text), least);
        return fmt::format("{} is not a whole number from {} to {}", in_quotes(text), least, most);
      },
      "N"};
}

Accepted multiple(std::int64_t of, std::int64_t least, std::int64_t most,
                  std::optional<std::int64_t> also) {
  return Accepted{
      [=](std::string const& text) {
        auto const value = spelled<std::int64_t>(text);
        if (value && *value >= least && *value <= most && *value % of == 0) return std::string();
        if (value && value == also) return std::string();
        return fmt::format("{} is not a multiple of {} from {} to {}{}", in_quotes(text), of, least,
                           most, also ? fmt::format(", nor {}", *also) : "");
      },
      fmt::format("{},{},..,{}{}", least, least + of, most, also ? fmt::format(",{}", *also) : "")};
}

Accepted seed_number() {
  return Accepted{[](std::string const& text) {
                    if (spelled<std::uint64_t>(text)) return std::string();
                    return fmt::format("{} is not a whole number from 0 to 2^64 - 1",
                                       in_quotes(text));
                  },
                  "N"};
}

Accepted real_number() {
  return Accepted{
      [](std::string const& text) {
        if (real(text)) return std::string();
        return fmt::format(
            "{} is not a finite number that f32 holds (0, or from 1.4e-45 to 3.4e38 in size)",
            in_quotes(text));
      },
      "NUMBER"};
}

Accepted power_of_two_range(int least, int most) {
  return Accepted{
      [=](std::string const& text) {
        auto const value = real(text);
        if (value && *value >= std::ldexp(1.0f, least) && *value <= std::ldexp(1.0f, most))
          return std::string();
        return fmt::format("{} is not a number from 2^{} to 2^{}", in_quotes(text), least, most);
      },
      fmt::format("2^{}..2^{}", least, most)};
}

Accepted not_empty(std::string const& what) {
  return Accepted{[what](std::string const& text) {
                    return text.empty() ? "'' is not " + what : std::string();
                  },
                  "TEXT"};
}
Accepted file_name() { return {not_empty("the name of a file").refusal, "FILE"}; }
Accepted own_file_name() {
  Accepted const any = file_name();
  return Accepted{[any](std::string const& text) {
                    return text == "-" ? "'-' is not the name of a file, which is ./-; standard "
                                         "input and output are /dev/stdin and /dev/stdout"
                                       : any.refusal(text);
                  },
                  "FILE"};
}

Accepted one_of(std::initializer_list<char const*> words) {
  std::vector<std::string> const known(words.begin(), words.end());
  std::string const list = fmt::format("{}", fmt::join(known, ", "));
  return Accepted{[known, list](std::string const& text) {
                    if (std::find(known.begin(), known.end(), text) != known.end())
                      return std::string();
                    return fmt::format("{} is not one of {}", in_quotes(text), list);
                  },
                  "{" + fmt::format("{}", fmt::join(known, "|")) + "}"};
}

Accepted folder_name() {
  return {[](std::string const& text) {
            return std::filesystem::is_directory(text)
                       ? std::string()
                       : fmt::format("{} is not a folder", in_quotes(text));
          },
          "FOLDER"};
}

std::optional<Extents> read_extents(std::string const& text) {
  auto const cross = text.find('x');
  if (cross == std::string::npos) return std::nullopt;
  auto const first = spelled<int>(std::string_view(text).substr(0, cross));
  auto const second = spelled<int>(std::string_view(text).substr(cross + 1));
  if (!first || !second || *first < 1 || *second < 1) return std::nullopt;
  return Extents{*first, *second};
}

std::optional<std::vector<std::int64_t>> read_list(std::string_view text, std::int64_t least,
                                                   std::int64_t most) {
  std::vector<std::int64_t> numbers;
  std::int64_t sum = 0;
  for (std::size_t at = 0; at <= text.size();) {
    std::size_t const end = std::min(text.find(',', at), text.size());
    auto const number = spelled<std::int64_t>(text.substr(at, end - at));
    if (!number || *number < 0 || *number > most - sum) return std::nullopt;
    numbers.push_back(*number);
    sum += *number;
    at = end + 1;
  }
  if (sum < least) return std::nullopt;
  return numbers;
}

}  // namespace tegula::tool
