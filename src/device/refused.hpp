#pragma once

/// The candidates of a plan that were refused, in lines of text.

#include <fmt/format.h>

#include <map>
#include <string>
#include <vector>

namespace tegula::device {

/// How many were refused for what, or with `all` each in a line of its own. Candidate:
/// GemmCandidate or AttentionCandidate.
template <class Candidate>
std::string text_of_refused(std::vector<Candidate> const& candidates, bool all) {
  std::map<std::string, int> refused;
  std::string s;
  for (Candidate const& candidate : candidates) {
    if (candidate.refused.empty()) continue;
    ++refused[candidate.refused];
    if (all)
      s += fmt::format("not {}: {}: {}\n", candidate.choice.configuration, candidate.name,
                       candidate.refused);
  }
  if (!all)
    for (auto const& [why, count] : refused) s += fmt::format("{:>4} refused: {}\n", count, why);
  return s;
}

}  // namespace tegula::device
