#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "checker/causality.hpp"
#include "checker/sites.hpp"
#include "machine/cta.hpp"
#include "machine/in_flight.hpp"

namespace tegula::sim {

/// Who accesses memory in a cluster, and what happens before what for them: its threads; its
/// mbarriers, for the copies that complete on them; and the grids before this one.
class Agents {
 public:
  /// A cluster starts. `on`: whether anything is looked for.
  void start(Cluster const& cluster, bool on);

  Causality& causality() { return causality_; }
  Causality const& causality() const { return causality_; }
  SiteTable& sites() { return sites_; }
  SiteTable const& sites() const { return sites_; }
  /// Whether a race of the two sites was reported the other way round; else it is from now on
  /// as given.
  bool raced_reversed(std::uint16_t site, std::uint16_t other);

  /// The thread of an agent that is one.
  Culprit culprit(int agent) const {
    return {agent / threads_of_cta_, agent % threads_of_cta_ / 32, agent % 32};
  }
  /// "warp 3 lane 7", with the rank of its CTA where that is not `cta`.
  std::string text(int agent, int cta) const;

  /// An mbarrier's agent, the same for each that is initialised at the address, and the
  /// mbarrier's place.
  int mbarrier_agent(int cta, std::uint32_t address);
  SharedRange mbarrier_of(int agent) const;
  /// The agent of a thread's cp.async for which a cp.async.mbarrier.arrive stands; and the thread
  /// of such an agent: itself where it is a thread, -1 where it is an mbarrier's.
  int copies_agent(int thread);
  int thread_of(int agent) const;
  /// Notes who issued a copy on a site that has landed for an mbarrier's agent; and tells who
  /// did last.
  void note_landing(int agent, std::uint16_t site, InFlight const& operation);
  struct Landing {
    std::uint16_t site;
    int issuer;
    std::int64_t phase;  ///< of the mbarrier, when the copy was issued
  };
  Landing landing_of(int agent, std::uint16_t site) const;

  /// Whether the thread comes after the grids before this one: always, where they are known to be
  /// complete; where not, after a griddepcontrol.wait.
  bool after_grids(int agent) const { return grids_ < 0 || causality_.seen(agent, grids_, 1); }
  /// The thread has waited for them; those who will acquire `into` come after such a wait.
  void wait_for_grids(int agent) {
    if (grids_ >= 0) causality_.acquire(agent, grids_complete_);
  }
  void wait_for_grids(Published& into) {
    if (grids_ >= 0) causality_.tell(into, grids_, 1);
  }
  /// The agent whose one access, at time 1, is the completion of the grids before this one; -1:
  /// they are known to be complete, or nothing is looked for.
  int grids_before() const { return grids_; }

 private:
  /// Of an mbarrier: where it is, and who issued the copies that landed for it, by their sites.
  struct Mbarrier {
    SharedRange place;
    std::vector<Landing> landings;
    int thread = -1;  ///< it is none: the agent is that of the thread's copies
  };
  Causality causality_;
  SiteTable sites_;
  std::vector<std::pair<std::uint16_t, std::uint16_t>> racing_;  ///< sites, as they were reported
  std::vector<Mbarrier> mbarriers_;
  int grids_ = -1;
  Published grids_complete_;
  int threads_of_cta_ = 0;
};

}  // namespace tegula::sim
