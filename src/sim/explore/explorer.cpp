#include "explore/explorer.hpp"

#include <algorithm>

#include "explore/step_objects.hpp"
#include "machine/cluster.hpp"

namespace tegula::sim {

namespace {

using Kind = Visible::Kind;

/// So many times in a row, for each thread, what changes nothing may be done again where nobody can
/// go on.
constexpr int kMostForced = 4;

}  // namespace

Explorer::Explorer(Processes& processes, bool accesses, bool refusals, std::int64_t max_steps)
    : processes_(processes), max_steps_(max_steps), dependence_(processes.shape()) {
  choices_.accesses = accesses;
  choices_.refusals = refusals;
  auto const places = static_cast<std::size_t>(processes.shape().clusters);
  clusters_.resize(places);
  launched_.resize(places);
  has_launched_.resize(places);
  refused_.resize(places);
  started_.resize(places);
}

void Explorer::follow(Choices const& choices) {
  for (Choices::Choice const& choice : choices.choices) {
    std::optional<ProcessId> const process = processes_.process(choice.process);
    bool const known = process && replay_.emplace(choice.step, *process).second;
    if (!known && !unmade_) unmade_ = choice;
  }
}

std::optional<Choices::Choice> Explorer::unmade() const {
  if (unmade_ || replay_.empty()) return unmade_;
  auto const& [step, process] = *replay_.begin();
  return Choices::Choice{step, processes_.name(process)};
}

/// The place of the cluster that a process belongs to.
int Explorer::place_of(ProcessId process) const {
  auto const pending = pending_.find(process);
  if (pending == pending_.end()) {
    auto const flying = std::find_if(flying_.begin(), flying_.end(), [&](Flying const& other) {
      return other.process == process && other.operation != nullptr;
    });
    return static_cast<int>(flying->cluster->place());
  }
  Thread const* const thread = pending->second.thread;
  return thread != nullptr ? static_cast<int>(thread->cta->cluster().place())
                           : static_cast<int>(pending->second.step.object);
}

/// Whether a thread that waits to be chosen would not wait for others, once it is.
bool Explorer::can_go(Pending const& pending) const {
  if (pending.refuses) return true;
  if (pending.thread == nullptr) {
    // Places are alike: the first to start is the first.
    std::uint64_t const place = pending.step.object;
    return place == 0 || has_launched_[place - 1];
  }
  Visible const& what = pending.what;
  Cta& cta = *pending.thread->cta;
  Cluster& cluster = cta.cluster();
  switch (what.kind) {
    case Kind::mbarrier_test:
      if (!pending.again) return true;
      [[fallthrough]];
    case Kind::mbarrier_wait: {
      MbarrierState const* const mbarrier =
          cluster.cta(what.cta).mbarrier_at(static_cast<std::uint32_t>(what.address));
      return mbarrier == nullptr || (mbarrier->phase & 1) != what.amount;
    }
    case Kind::cluster_wait:
      return cluster.barrier_complete(cta.warp(pending.thread->index / 32));
    case Kind::registers:
      return what.amount <= cta.free_registers();
    case Kind::wait_group:
    case Kind::wait_group_read: {
      bool const read = what.kind == Kind::wait_group_read;
      std::vector<InFlight*> const waited =
          what.groups->beyond(static_cast<std::size_t>(what.amount));
      return std::all_of(waited.begin(), waited.end(), [&](InFlight const* operation) {
        return operation->landed() || (read && operation->done_reading());
      });
    }
    case Kind::load:
    case Kind::peer_load:
    case Kind::atomic: {
      if (!pending.again) return true;
      void const* const memory =
          what.cta < 0
              ? reinterpret_cast<void const*>(static_cast<std::uintptr_t>(what.address))
              : cluster.cta(what.cta).shared().at(static_cast<std::uint32_t>(what.address));
      return value_at(memory, what.amount) != pending.seen;
    }
    case Kind::reread:
      return false;
    default:
      return true;
  }
}

bool Explorer::can_land(Flying const& flying) const {
  if (flying.operation == nullptr) return false;
  if (flying.after == flying.process) return true;
  return std::none_of(flying_.begin(), flying_.end(), [&](Flying const& other) {
    return other.process == flying.after && other.operation != nullptr;
  });
}

bool Explorer::possible(ProcessId process) const {
  auto const pending = pending_.find(process);
  if (pending != pending_.end()) return can_go(pending->second) || pending->second.again;
  return std::any_of(flying_.begin(), flying_.end(), [&](Flying const& flying) {
    return flying.process == process && can_land(flying);
  });
}

/// The machine's choice: the process that went last, else the first thread, warp or warpgroup, else
/// the oldest operation in flight. Nobody where none can go on.
std::optional<ProcessId> Explorer::preferred() {
  auto const last = pending_.find(last_);
  if (last != pending_.end() && can_go(last->second)) return last_;
  for (auto const& [id, pending] : pending_) {
    if (can_go(pending) && !pending.refuses) return id;
  }
  for (Flying const& flying : flying_) {
    if (can_land(flying)) return flying.process;
  }
  return std::nullopt;
}

/// Somebody of the place runs, or a cluster starts there.
bool Explorer::goes_on(int place) const {
  auto const i = static_cast<std::size_t>(place);
  return launched_[i] || (clusters_[i] != nullptr && clusters_[i]->anyone_ready());
}

/// Who goes next; nobody where it has stopped.
std::optional<ProcessId> Explorer::next() {
  std::optional<ProcessId> const own = preferred();
  std::optional<ProcessId> next = own;
  auto const replayed = replay_.find(chosen_);
  if (followed_to_ < follow_.size()) {
    next = follow_[followed_to_++];
  } else if (replayed != replay_.end()) {
    next = replayed->second;
  }
  if (next && next != own && !possible(*next)) {
    if (replayed != replay_.end()) unmade_ = {chosen_, processes_.name(*next)};
    follow_.clear();
    replay_.clear();
    next = own;
  } else if (replayed != replay_.end()) {
    replay_.erase(replayed);
  }
  if (!next) {
    // Those that would find what they found last, in turn, lest one of them was about to give up.
    auto const again = std::find_if(pending_.begin(), pending_.end(),
                                    [](auto const& entry) { return entry.second.again; });
    if (again == pending_.end() || ++forced_ > kMostForced * static_cast<int>(pending_.size())) {
      stop(true);
      return std::nullopt;
    }
    next = again->first;
  } else {
    forced_ = 0;
  }
  if (chosen_ >= max_steps_) {
    stop(false);
    return std::nullopt;
  }
  if (list_alternatives_) list();
  if (next != own) choices_.choices.push_back({chosen_, processes_.name(*next)});
  return next;
}

/// Who has the baton decides; who is next goes on when its cluster has it.
void Explorer::choose(int place) {
  while (active_ && !goes_on(place)) {
    int to = place;
    if (begun_ < processes_.shape().clusters && baton_ != nullptr) {
      to = begun_;  // everybody is to be there at the first choice
    } else {
      if (!handed_) handed_ = next();
      if (!handed_) break;
      to = place_of(*handed_);
    }
    if (to == place) {
      go(*std::exchange(handed_, std::nullopt));
    } else {
      baton_->give(place, to);
      cluster_ = clusters_[static_cast<std::size_t>(place)];
    }
  }
}

bool Explorer::choose(Cluster& cluster) {
  choose(static_cast<int>(cluster.place()));
  return cluster.anyone_ready();
}

void Explorer::go(ProcessId process) {
  ++chosen_;
  last_ = process;
  auto const found = pending_.find(process);
  if (found != pending_.end()) {
    Pending pending = std::move(found->second);
    pending_.erase(found);
    return go(pending);
  }
  land(*std::find_if(flying_.begin(), flying_.end(), [&](Flying const& flying) {
    return flying.process == process && flying.operation != nullptr;
  }));
}

void Explorer::go(Pending& pending) {
  Visible const& what = pending.what;
  Step& step = pending.step;
  if (pending.refuses) {
    refused_[step.object] = true;
    return perform(std::move(step));
  }
  if (pending.thread == nullptr) {
    step.bytes = {launches()};
    step.amount = pending_clusters_->empty() ? 0 : 1;
    launched_[step.object] = has_launched_[step.object] = true;
    return perform(std::move(step));
  }
  if (what.kind == Kind::launch_request) {
    Cluster const& cluster = pending.thread->cta->cluster();
    if (!refuses(cluster)) step.bytes = {launches()};
    if (choices_.refusals)
      step.bytes.push_back({refusal_key(static_cast<int>(cluster.place())), 1, false});
  }
  if (step.kind == Step::Kind::wait_for) {
    for (InFlight const* const operation :
         what.groups->beyond(static_cast<std::size_t>(what.amount))) {
      step.others.push_back(operation->remembered.process);
    }
  }
  if (what.kind == Kind::mbarrier_test || what.kind == Kind::load || what.kind == Kind::peer_load ||
      (what.kind == Kind::atomic && !what.blind)) {
    did_[step.process] = {what.kind, what.cta, what.address, pending.seen};
    if (what.kind == Kind::mbarrier_test &&
        can_go(Pending{
            {}, {Kind::mbarrier_wait, what.cta, what.address, what.amount}, pending.thread}))
      did_.erase(step.process);
  } else {
    did_.erase(step.process);
  }
  perform(std::move(step));
  pending.thread->cta->set_ready(*pending.thread);
}

/// Leaves the rest to the machine: where it is stuck, or has taken too many steps.
void Explorer::stop(bool stuck) {
  active_ = false;
  complete_ = stuck;
  for (auto& [id, pending] : pending_) {
    if (stuck) {
      auto const before = reversals_.size();
      dependence_.blocked(pending.step, reversals_);
      // The step that it did not take stands for itself.
      if (reversals_.size() != before) {
        for (std::size_t i = before; i < reversals_.size(); ++i)
          reversals_[i].second = static_cast<std::uint32_t>(steps_.size());
        steps_.push_back(pending.step);
      }
    }
    if (pending.thread != nullptr) pending.thread->cta->set_ready(*pending.thread);
  }
  pending_.clear();
}

void Explorer::list() {
  std::vector<ProcessId>& who = alternatives_.emplace_back();
  for (auto const& [id, pending] : pending_) {
    if (can_go(pending)) who.push_back(id);
  }
  for (Flying const& flying : flying_) {
    if (can_land(flying)) who.push_back(flying.process);
  }
}

}  // namespace tegula::sim
