#pragma once

#include <vector>

#include "checker/causality.hpp"
#include "checker/sites.hpp"

namespace tegula::sim {

/// Threads that ask together: one, or the 128 of a warpgroup, which must all know what
/// comes before.
class Issuers {
 public:
  Issuers(Causality const& causality, int first, int count);
  bool known(int agent, Time time) const;
  bool seen(int agent, Time time) const;
  bool fenced(int agent, Time time) const;

 private:
  struct Kind {
    int thread;  ///< one of those that know the same
    bool alone;  ///< there is no other
  };
  friend class RaceShadow;
  bool among(int agent) const { return agent >= first_ && agent < first_ + count_; }

  Causality const& causality_;
  int first_;
  int count_;
  std::vector<Kind> kinds_;
  mutable Stamp writer_;  ///< the latest that was found to be in order: mostly the next is the same
};

}  // namespace tegula::sim
