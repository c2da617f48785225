#pragma once

#include <string>
#include <utility>

#include "tegula/arch/source_location.hpp"

namespace tegula::sim {

/// A thread in the cluster; -1 where a finding concerns a whole warp, or all.
struct Culprit {
  int cta = 0;
  int warp = -1;
  int lane = -1;
};

/// The other instruction of a pair, for a finding: where it stands (line 0: there is none), who
/// executed it (rank -1: not known), and a clause on what would order the two.
struct Opposite {
  Opposite(SourceLocation where = {}, Culprit who = {-1, -1, -1}, std::string order = {})
      : where(where), who(who), order(std::move(order)) {}
  SourceLocation where;
  Culprit who;
  std::string order;
};

}  // namespace tegula::sim
