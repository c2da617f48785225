#pragma once

/// Text of unknown origin and counts in sentences, and what to know of JSON before it is parsed.

#include <cstddef>
#include <string>
#include <string_view>

namespace tegula::io {

namespace detail {

/// Bytes of the UTF-8 character that `text` begins with; 0 where it begins with none.
inline std::size_t utf8_bytes(std::string_view text) {
  auto const byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  unsigned const first = byte(0);
  if (first < 0x80) return 1;
  std::size_t const length = first >= 0xf5   ? 0
                             : first >= 0xf0 ? 4
                             : first >= 0xe0 ? 3
                             : first >= 0xc2 ? 2
                                             : 0;
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  bool const overlong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
  bool const beyond = (first == 0xed && byte(1) >= 0xa0) || (first == 0xf4 && byte(1) >= 0x90);
  return overlong || beyond ? 0 : length;
}

/// Likewise, and 0 where that is a control character.
inline std::size_t printable_bytes(std::string_view text) {
  auto const byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  std::size_t const bytes = utf8_bytes(text);
  bool const control = bytes == 1   ? byte(0) < 0x20 || byte(0) == 0x7f
                       : bytes == 2 ? byte(0) == 0xc2 && byte(1) < 0xa0
                                    : false;
  return control ? 0 : bytes;
}

}  // namespace detail

/// The text as a sentence shows it: at most `most` characters, then "..."; control characters and
/// what is not UTF-8 as \xNN.
inline std::string printable(std::string_view text, std::size_t most = 100) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string result;
  for (std::size_t shown = 0; !text.empty(); ++shown) {
    if (shown == most) return result + "...";
    std::size_t const bytes = detail::printable_bytes(text);
    if (bytes > 0) {
      result += text.substr(0, bytes);
    } else {
      unsigned const code = static_cast<unsigned char>(text[0]);
      result += {'\\', 'x', kHex[code / 16], kHex[code % 16]};
    }
    text.remove_prefix(bytes > 0 ? bytes : 1);
  }
  return result;
}

/// Whether all of the text is UTF-8, control characters included.
inline bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    std::size_t const bytes = detail::utf8_bytes(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

/// printable(text) in single quotes.
inline std::string in_quotes(std::string_view text) { return "'" + printable(text) + "'"; }

/// The noun behind a count: "tile" behind 1, else "tiles", or `many` where that is not its plural.
template <class Count>
std::string noun(Count count, std::string_view one, std::string_view many = {}) {
  if (count == 1) return std::string(one);
  return many.empty() ? std::string(one) + "s" : std::string(many);
}
/// A count and its noun: "1 tile", "3 tiles", "1 axis", "2 axes".
template <class Count>
std::string counted(Count count, std::string_view one, std::string_view many = {}) {
  return std::to_string(count) + " " + noun(count, one, many);
}

/// The most that arrays and objects of a JSON text are nested, for readers that recurse; of text
/// that is not JSON at least what a parser would reach.
inline int json_depth(std::string_view text) {
  int depth = 0;
  int deepest = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char const c = text[i];
    if (in_string) {
      i += c == '\\' ? 1 : 0;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      deepest = ++depth > deepest ? depth : deepest;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return deepest;
}

}  // namespace tegula::io
