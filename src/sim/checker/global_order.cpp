#include "checker/global_order.hpp"

#include <algorithm>
#include <utility>

namespace tegula::sim {

namespace {

void add(std::vector<std::uint32_t>& sorted, std::uint32_t id) {
  auto const place = std::lower_bound(sorted.begin(), sorted.end(), id);
  if (place == sorted.end() || *place != id) sorted.insert(place, id);
}

std::uint32_t number_of(std::vector<std::uint32_t> const& set,
                        std::map<std::vector<std::uint32_t>, std::uint32_t>& numbers,
                        std::vector<std::vector<std::uint32_t>>& sets) {
  auto const [place, is_new] = numbers.try_emplace(set, static_cast<std::uint32_t>(sets.size()));
  if (is_new) sets.push_back(set);
  return place->second;
}

}  // namespace

bool GlobalOrder::reaches(std::vector<std::uint32_t> const& later,
                          std::vector<std::uint32_t> const& earlier) const {
  if (later.empty() || earlier.empty()) return false;
  std::vector<bool> seen(releases_.size());
  std::vector<std::uint32_t> open = later;
  while (!open.empty()) {
    std::uint32_t const id = open.back();
    open.pop_back();
    if (seen[id]) continue;
    seen[id] = true;
    if (std::binary_search(earlier.begin(), earlier.end(), id)) return true;
    for (std::uint32_t const before : releases_[id].before) open.push_back(before);
  }
  return false;
}

void ClusterOrder::start(GlobalOrder& order, std::int64_t cluster) {
  order_ = &order;
  cluster_ = cluster;
  threads_.clear();
  acquires_.clear();
  own_.clear();
  foreign_numbers_ = {{{}, 0}};
  cover_numbers_ = foreign_numbers_;
  foreigns_ = {{}};
  covers_ = foreigns_;
}

std::vector<std::uint32_t> ClusterOrder::take(GlobalActor const& who,
                                              std::vector<std::uint32_t> const& releases, bool of_cta,
                                              SourceLocation where) {
  Acquire acquire{who.agent, who.time, {}};
  std::vector<std::uint32_t> left;
  for (std::uint32_t const id : releases) {
    Release const& release = order_->release(id);
    if (release.cluster == cluster_) continue;
    if (of_cta || release.of_cta) {
      order_->add({release.cluster, cluster_, release.of_cta ? release.where : where});
      left.push_back(id);
    } else {
      add(acquire.releases, id);
    }
  }
  if (acquire.releases.empty()) return left;
  auto const earlier = std::find_if(acquires_.rbegin(), acquires_.rend(),
                                    [&](Acquire const& a) { return a.agent == who.agent; });
  if (earlier != acquires_.rend()) {
    for (std::uint32_t const id : earlier->releases) add(acquire.releases, id);
  }
  acquires_.push_back(std::move(acquire));
  return left;
}

void ClusterOrder::fence(GlobalActor const& who, bool of_cta, SourceLocation where, CausalPast past) {
  ThreadState& state = this->state(who);
  state.observed = take(who, state.observed, of_cta, where);
  // A wide fence goes on to release what came before it.
  if (of_cta && state.fence && !state.fence->of_cta) return;
  if (state.release) state.previous = state.release;
  state.release.reset();
  state.fence = Release{cluster_, who.cta, who.thread, of_cta, where, std::move(past), {}};
}

void ClusterOrder::acquire(GlobalActor const& who, std::uintptr_t address, bool of_cta,
                           SourceLocation where) {
  std::vector<std::uint32_t> const left = take(who, order_->at(address), of_cta, where);
  for (std::uint32_t const id : left) add(state(who).observed, id);  // a fence may take them yet
}

void ClusterOrder::release(GlobalActor const& who, std::uintptr_t address, bool of_cta, SourceLocation where,
                           CausalPast past) {
  Release release{cluster_, who.cta, who.thread, of_cta, where, std::move(past), foreigns_[foreign(who)]};
  std::uint32_t const id = order_->add(std::move(release));
  own_.push_back(id);
  for (std::uint32_t const before : replace(who, address, id)) order_->comes_before(before, id);
}

std::vector<std::uint32_t> ClusterOrder::replace(GlobalActor const& who, std::uintptr_t address,
                                                 std::uint32_t release) {
  std::vector<std::uint32_t>& word = order_->at(address);
  std::vector<std::uint32_t> replaced;
  std::erase_if(word, [&](std::uint32_t id) {
    Release const& other = order_->release(id);
    bool const own = other.cluster == cluster_ && other.cta == who.cta && other.thread == who.thread;
    if (own && id != release) replaced.push_back(id);
    return own;
  });
  add(word, release);
  return replaced;
}

bool ClusterOrder::acquired(GlobalActor const& who, int agent, Time time) const {
  return std::any_of(acquires_.begin(), acquires_.end(), [&](Acquire const& acquire) {
    return acquire.agent == who.agent &&
           std::any_of(acquire.releases.begin(), acquire.releases.end(), [&](std::uint32_t id) {
             return order_->release(id).past.covers(static_cast<std::uint32_t>(agent),
                                                    static_cast<std::uint32_t>(time));
           });
  });
}

void ClusterOrder::atomic(GlobalActor const& who, std::uintptr_t address, bool reads, bool writes) {
  ThreadState& state = this->state(who);
  if (reads) {
    for (std::uint32_t const id : order_->at(address)) add(state.observed, id);
  }
  if (!writes || !state.fence) return;
  if (!state.release) {
    Release release = *state.fence;
    release.before = foreigns_[foreign(who)];
    if (state.previous) add(release.before, *state.previous);
    state.release = order_->add(std::move(release));
    own_.push_back(*state.release);
  }
  // What the thread released there before is ordered before what it releases now.
  replace(who, address, *state.release);
}

std::uint32_t ClusterOrder::foreign(GlobalActor const& who) {
  if (acquires_.empty()) return 0;
  std::vector<std::uint32_t> set;
  for (Acquire const& acquire : acquires_) {
    if (!who.causality->known(who.knower, static_cast<int>(acquire.agent), static_cast<Time>(acquire.time)))
      continue;
    for (std::uint32_t const id : acquire.releases) add(set, id);
  }
  return number_of(set, foreign_numbers_, foreigns_);
}

std::uint32_t ClusterOrder::cover(std::uint32_t agent, std::uint32_t time) {
  if (own_.empty() || agent == GlobalShadow::kNobody) return 0;
  std::vector<std::uint32_t> set;
  for (std::uint32_t const id : own_) {
    if (order_->release(id).past.covers(agent, time)) add(set, id);
  }
  return number_of(set, cover_numbers_, covers_);
}

}  // namespace tegula::sim
