#include "checker/agents.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "machine/cluster.hpp"

namespace tegula::sim {

void Agents::start(Cluster const& cluster, bool on) {
  threads_of_cta_ = cluster.launch().kernel->threads;
  causality_.start(on ? cluster.ctas() * threads_of_cta_ : 0);
  mbarriers_.clear();
  racing_.clear();
  grids_complete_.clear();
  grids_ = -1;
  if (!on || !cluster.launch().kernel->programmatic_dependent_launch) return;
  grids_ = causality_.add_agent();
  mbarriers_.push_back({{-1, 0, 0}, {}, -1});  // those of mbarriers are numbered from threads() on
  wait_for_grids(grids_complete_);
}

std::string Agents::text(int agent, int cta) const {
  Culprit const who = culprit(agent);
  std::string text = fmt::format("warp {} lane {}", who.warp, who.lane);
  if (who.cta != cta) text += fmt::format(" of CTA {} of the cluster", who.cta);
  return text;
}

bool Agents::raced_reversed(std::uint16_t site, std::uint16_t other) {
  if (std::find(racing_.begin(), racing_.end(), std::pair(other, site)) != racing_.end())
    return site != other;
  if (std::find(racing_.begin(), racing_.end(), std::pair(site, other)) == racing_.end())
    racing_.emplace_back(site, other);
  return false;
}

int Agents::mbarrier_agent(int cta, std::uint32_t address) {
  int const threads = causality_.threads();
  for (std::size_t i = 0; i < mbarriers_.size(); ++i) {
    SharedRange const& place = mbarriers_[i].place;
    if (place.cta == cta && place.address == address) return threads + static_cast<int>(i);
  }
  int const agent = causality_.add_agent();
  if (agent - threads == static_cast<int>(mbarriers_.size()))
    mbarriers_.push_back({{cta, address, 8}, {}, -1});
  return agent;
}

int Agents::copies_agent(int thread) {
  for (std::size_t i = 0; i < mbarriers_.size(); ++i) {
    if (mbarriers_[i].thread == thread) return causality_.threads() + static_cast<int>(i);
  }
  int const agent = causality_.add_agent(true);
  if (agent - causality_.threads() == static_cast<int>(mbarriers_.size()))
    mbarriers_.push_back({{-1, 0, 0}, {}, thread});
  return agent;
}

int Agents::thread_of(int agent) const {
  int const threads = causality_.threads();
  return agent < threads ? agent : mbarriers_[static_cast<std::size_t>(agent - threads)].thread;
}

SharedRange Agents::mbarrier_of(int agent) const {
  return mbarriers_[static_cast<std::size_t>(agent - causality_.threads())].place;
}

void Agents::note_landing(int agent, std::uint16_t site, InFlight const& operation) {
  auto& landings = mbarriers_[static_cast<std::size_t>(agent - causality_.threads())].landings;
  int const issuer = operation.cta * threads_of_cta_ + operation.thread;
  for (Landing& landing : landings) {
    if (landing.site != site) continue;
    landing = {site, issuer, operation.remembered.phase};
    return;
  }
  landings.push_back({site, issuer, operation.remembered.phase});
}

Agents::Landing Agents::landing_of(int agent, std::uint16_t site) const {
  for (Landing const& landing :
       mbarriers_[static_cast<std::size_t>(agent - causality_.threads())].landings) {
    if (landing.site == site) return landing;
  }
  return {site, -1, 0};
}

}  // namespace tegula::sim
