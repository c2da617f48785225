#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace tegula::device {

/// Whether a line of a compiler's log tells of an error: "x.cu(3): error: ...", and of ptxas
/// "..., line 3; error   : ..." and "ptxas fatal   : ...".
inline bool tells_of_an_error(std::string_view line) {
  for (std::string_view const word : {"error", "fatal"}) {
    for (auto at = line.find(word); at != std::string_view::npos; at = line.find(word, at + 1)) {
      auto const behind = line.find_first_not_of(' ', at + word.size());
      if (behind != std::string_view::npos && line[behind] == ':') return true;
    }
  }
  return false;
}

/// The first line of a compiler's log that tells of an error, with where it is; else the log's
/// first line.
inline std::string first_error(std::string_view log) {
  std::string_view const first = log.substr(0, log.find('\n'));
  for (std::string_view rest = log; !rest.empty();) {
    std::string_view const line = rest.substr(0, rest.find('\n'));
    if (tells_of_an_error(line)) return std::string(line);
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
  }
  return std::string(first);
}

}  // namespace tegula::device
