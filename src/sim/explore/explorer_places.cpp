// The places of an exploration: clusters that start and end in them, and the process of each that
// refuses its requests for others.

#include <algorithm>

#include "explore/explorer.hpp"
#include "explore/step_objects.hpp"
#include "machine/cluster.hpp"

namespace tegula::sim {

void Explorer::share(Baton& baton, PendingClusters* pending) {
  baton_ = &baton;
  pending_clusters_ = pending;
}

void Explorer::start(Cluster& cluster) {
  cluster_ = &cluster;
  auto const place = static_cast<std::size_t>(cluster.place());
  clusters_[place] = &cluster;
  launched_[place] = false;
  if (active_ && choices_.refusals && pending_clusters_ != nullptr)
    may_refuse(static_cast<int>(place));
}

/// From now on the requests of the cluster in the place may be refused, by a process of its own.
void Explorer::may_refuse(int place) {
  auto const i = static_cast<std::size_t>(place);
  refused_[i] = false;
  ProcessId const of_place = processes_.shape().place(place);
  ProcessId const refuser = processes_.operation(of_place, started_[i]++);
  Step issue;
  issue.kind = Step::Kind::issue;
  issue.process = of_place;
  issue.others = {refuser};
  perform(std::move(issue));
  Step step;
  step.kind = Step::Kind::access;
  step.choice = true;
  step.process = refuser;
  step.object = static_cast<std::uint64_t>(place);
  step.bytes = {{refusal_key(place), 1, true}};
  pending_.emplace(refuser, Pending{.step = std::move(step), .refuses = true});
}

/// The cluster in the place has ended. That its requests are refused after the last of them stands
/// for that they were not: the machine's choice.
void Explorer::end_refusals(int place) {
  auto const found = std::find_if(pending_.begin(), pending_.end(), [&](auto const& entry) {
    return entry.second.refuses && entry.second.step.object == static_cast<std::uint64_t>(place);
  });
  if (found == pending_.end()) return;
  Step step = std::move(found->second.step);
  pending_.erase(found);
  if (!active_ || chosen_ >= max_steps_) return;
  if (followed_to_ < follow_.size() && follow_[followed_to_] == step.process) ++followed_to_;
  if (list_alternatives_) alternatives_.emplace_back();
  ++chosen_;
  perform(std::move(step));
}

bool Explorer::refuses(Cluster const& cluster) const {
  return active_ && refused_[static_cast<std::size_t>(cluster.place())];
}

void Explorer::finish(Cluster& cluster) {
  end_refusals(static_cast<int>(cluster.place()));
  std::erase_if(pending_, [&](auto const& entry) {
    Thread const* const thread = entry.second.thread;
    return thread != nullptr && &thread->cta->cluster() == &cluster;
  });
  std::erase_if(flying_, [&](Flying const& flying) { return flying.cluster == &cluster; });
  int const threads = cluster.ctas() * processes_.shape().threads;
  for (int i = 0; i < threads; ++i)
    did_.erase(static_cast<ProcessId>(static_cast<int>(cluster.place()) * threads + i));
}

/// The clusters that have not started, as what a step changes, or, where there are none, reads.
Bytes Explorer::launches() const { return {kLaunches, 1, !pending_clusters_->empty()}; }

std::optional<std::int64_t> Explorer::launch(int place) {
  if (active_) {
    auto const i = static_cast<std::size_t>(place);
    Step step;
    step.kind = Step::Kind::launch;
    step.choice = true;
    step.process = processes_.shape().place(place);
    step.object = static_cast<std::uint64_t>(place);
    ProcessId const process = step.process;
    pending_.emplace(process, Pending{.step = std::move(step)});
    choose(place);
    launched_[i] = false;
  }
  return pending_clusters_->take();
}

}  // namespace tegula::sim
