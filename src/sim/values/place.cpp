#include "values/place.hpp"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>

namespace tegula::sim {

namespace {

std::string ranges(char const* one, char const* many, std::uint32_t bits) {
  std::string text = std::has_single_bit(bits) ? one : many;
  char const* separator = " ";
  for (int i = 0; i < 32; ++i) {
    if ((bits >> i & 1) == 0) continue;
    int last = i;
    while (last < 31 && (bits >> (last + 1) & 1) != 0) ++last;
    text +=
        last == i ? fmt::format("{}{}", separator, i) : fmt::format("{}{}-{}", separator, i, last);
    separator = ", ";
    i = last;
  }
  return text;
}

}  // namespace

bool same_place(SourceLocation const& a, SourceLocation const& b) {
  return a.line == b.line && (a.file == b.file || std::strcmp(a.file, b.file) == 0);
}

std::string place_text(SourceLocation const& where) {
  std::string const path = std::filesystem::path(where.file).lexically_normal().string();
  std::string_view file = path;
  if (file.empty()) return "an unknown line";
  std::size_t const name = file.rfind('/');
  if (name != std::string_view::npos && name > 0) {
    std::size_t const folder = file.rfind('/', name - 1);
    if (folder != std::string_view::npos) file.remove_prefix(folder + 1);
  }
  return fmt::format("{}:{}", file, where.line);
}

std::string lanes_text(std::uint32_t lanes) { return ranges("lane", "lanes", lanes); }
std::string warps_text(std::uint32_t warps) { return ranges("warp", "warps", warps); }

}  // namespace tegula::sim
