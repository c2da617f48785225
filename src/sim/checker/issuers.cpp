#include "checker/issuers.hpp"

#include <algorithm>

namespace tegula::sim {

Issuers::Issuers(Causality const& causality, int first, int count)
    : causality_(causality), first_(first), count_(count) {
  for (int thread = first; thread < first + count; ++thread) {
    auto const same = std::find_if(kinds_.rbegin(), kinds_.rend(), [&](Kind const& kind) {
      return causality.same_knowledge(kind.thread, thread);
    });
    if (same != kinds_.rend()) {
      same->alone = false;
    } else {
      kinds_.push_back({thread, true});
    }
  }
}

bool Issuers::known(int agent, Time time) const {
  return std::all_of(kinds_.begin(), kinds_.end(), [&](Kind const& kind) {
    return kind.alone ? causality_.known(kind.thread, agent, time)
                      : causality_.known_to_others(kind.thread, agent, time);
  });
}

bool Issuers::seen(int agent, Time time) const {
  return std::all_of(kinds_.begin(), kinds_.end(), [&](Kind const& kind) {
    return kind.alone ? causality_.seen(kind.thread, agent, time)
                      : causality_.seen_by_others(kind.thread, agent, time);
  });
}

bool Issuers::fenced(int agent, Time time) const {
  if (among(agent) && !causality_.fenced_shared(agent, agent, time)) return false;
  return std::all_of(kinds_.begin(), kinds_.end(), [&](Kind const& kind) {
    return kind.alone ? causality_.fenced_shared(kind.thread, agent, time)
                      : causality_.fenced_shared_for_others(kind.thread, agent, time);
  });
}

}  // namespace tegula::sim
