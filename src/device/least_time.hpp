#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tegula/io/text.hpp"

namespace tegula::device {

/// Why the first of a plan's candidates is chosen, what bounds it, and how much more time the next
/// would take.
template <class Candidate> std::string least_time(std::vector<Candidate> const& candidates) {
  auto const& cost = candidates.front().choice.cost;
  char const* const bound = cost.tensor >= std::max(cost.l2, cost.dram) ? "the tensor cores"
                            : cost.l2 >= cost.dram                      ? "L2"
                                                                        : "memory";
  std::string text = fmt::format("{} is predicted to take the least time: {} in {}, bound by {}",
                                 candidates.front().name, io::counted(cost.tiles, "tile"),
                                 io::counted(cost.waves, "wave"), bound);
  if (candidates.size() > 1 && candidates[1].refused.empty())
    text += fmt::format("; the next would take {:.1f} % more",
                        100 * (candidates[1].choice.cost.total / cost.total - 1));
  return text;
}

}  // namespace tegula::device
