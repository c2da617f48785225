#pragma once

#include <string>
#include <string_view>

namespace tegula::device {

/// The first line of a compiler's log that tells of an error, with where it is; else the log's
/// first line.
inline std::string first_error(std::string_view log) {
  std::size_t const at = log.find("error: ");
  std::size_t const begin = at == std::string_view::npos ? 0 : log.rfind('\n', at) + 1;
  return std::string(log.substr(begin, log.find('\n', begin) - begin));
}

}  // namespace tegula::device
