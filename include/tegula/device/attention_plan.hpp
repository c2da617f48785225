#pragma once

/// Why attention is computed by one configuration and not by another: all that choose_attention
/// (selection.hpp) weighs, as values that can be printed.

#include <string>
#include <vector>

#include "tegula/device/selection.hpp"

namespace tegula {

struct AttentionCandidate {
  AttentionChoice choice;
  std::string name;
  std::string refused;  ///< why it is not for this problem; empty for those that could be chosen
  /// by the estimate of its family, which compares configurations of that family only
  double cost = 0;
};

/// All there is to say about a choice.
struct AttentionPlan {
  std::string problem;
  std::vector<AttentionCandidate>
      candidates;      ///< those that could be chosen, the cheapest first; the refused
  std::string reason;  ///< for the choice: the first candidate

  AttentionChoice const& chosen() const { return candidates.front().choice; }
};

/// As choose_attention, with everything that it weighed. Preconditions and errors as there.
AttentionPlan plan_attention(AttentionArguments const& arguments, DeviceProperties const& device,
                             AttentionConstraints const& wanted = {});

/// A table for people: the problem, the candidates with their costs as multiples of the least,
/// how many were refused and for what, and the reason. With `all`, each refused one in a line of
/// its own.
std::string to_string(AttentionPlan const& plan, bool all = false);

}  // namespace tegula
