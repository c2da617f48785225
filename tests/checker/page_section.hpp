#pragma once

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

namespace tegula {

/// Writes text into a page, in place of what stands between two lines of it:
/// `<!-- NAME: begin (COMMAND writes this) -->` and `<!-- NAME: end -->`.
inline void write_page_section(std::string const& path, std::string const& name,
                               std::string const& command, std::string const& text) {
  std::string const first = fmt::format("<!-- {}: begin ({} writes this) -->", name, command);
  std::string const last = fmt::format("<!-- {}: end -->", name);
  std::ifstream in(path);
  std::string page((std::istreambuf_iterator<char>(in)), {});
  std::size_t const begin = page.find(first), end = page.find(last);
  if (begin == std::string::npos || end == std::string::npos)
    throw std::runtime_error(fmt::format("{} has no section between {} and {}", path, first, last));
  std::size_t const from = begin + first.size();
  page.replace(from, end - from, "\n\n" + text + "\n");
  std::ofstream(path) << page;
}

}  // namespace tegula
