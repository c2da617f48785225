#include "checker/global_order.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace tegula::sim {

namespace {

void add(std::vector<std::uint32_t>& sorted, std::uint32_t id) {
  auto const place = std::lower_bound(sorted.begin(), sorted.end(), id);
  if (place == sorted.end() || *place != id) sorted.insert(place, id);
}

void add(std::vector<std::uint32_t>& sorted, std::vector<std::uint32_t> const& others) {
  if (std::includes(sorted.begin(), sorted.end(), others.begin(), others.end())) return;
  std::vector<std::uint32_t> both;
  std::set_union(sorted.begin(), sorted.end(), others.begin(), others.end(),
                 std::back_inserter(both));
  sorted = std::move(both);
}

bool contains(std::vector<std::uint32_t> const& sorted, std::uint32_t id) {
  return std::binary_search(sorted.begin(), sorted.end(), id);
}

void raise(std::vector<Time>& times, std::vector<Time> const& others) {
  if (times.size() < others.size()) times.resize(others.size());
  for (std::size_t i = 0; i < others.size(); ++i) times[i] = std::max(times[i], others[i]);
}

template <class Set>
std::uint32_t number_of(Set const& set, std::map<Set, std::uint32_t>& numbers,
                        std::vector<Set>& sets) {
  auto const [place, is_new] = numbers.try_emplace(set, static_cast<std::uint32_t>(sets.size()));
  if (is_new) sets.push_back(set);
  return place->second;
}

}  // namespace

void CausalPast::add(CausalPast const& other) {
  raise(known, other.known);
  raise(fenced, other.fenced);
}

bool CausalPast::includes(CausalPast const& other) const {
  auto const all = [](std::vector<Time> const& own, std::vector<Time> const& others) {
    for (std::size_t i = 0; i < others.size(); ++i) {
      if (others[i] > (i < own.size() ? own[i] : 0)) return false;
    }
    return true;
  };
  return all(known, other.known) && all(fenced, other.fenced);
}

bool GlobalOrder::seen(std::vector<Seen> const& reads, std::int64_t cluster, std::uint32_t foreign,
                       std::uintptr_t begin, std::uintptr_t end, int size) const {
  auto const bytes = static_cast<std::uintptr_t>(size);
  for (std::uintptr_t at = begin / bytes * bytes; at < end; at += bytes) {
    auto const read =
        std::find_if(reads.begin(), reads.end(), [&](Seen const& s) { return s.address == at; });
    auto const word = words_.find(at);
    if (read == reads.end() || word == words_.end()) return false;
    auto const write = word->second.writes.find({cluster, foreign});
    if (write == word->second.writes.end() || write->second < read->first ||
        write->second > read->last)
      return false;
  }
  return true;
}

void GlobalOrder::add(TooNarrow const& pair) {
  // Who polls a word finds the same again and again.
  auto const again = [&](TooNarrow const& other) {
    return other.released == pair.released && other.acquired == pair.acquired &&
           other.by.instruction == pair.by.instruction &&
           other.by.where.line == pair.by.where.line && other.by.where.file == pair.by.where.file;
  };
  if (std::none_of(too_narrow_.begin(), too_narrow_.end(), again)) too_narrow_.push_back(pair);
}

/// Calls visit(release, whether a fence.proxy.async has been met on the way back to it) until it
/// returns true.
template <class F>
void GlobalOrder::walk_back(Releases const& later, bool fenced, Walked& walked, F&& visit) const {
  walked.resize(releases_.size());
  std::vector<std::pair<std::uint32_t, bool>> open;
  auto const go_on = [&](Releases const& releases, bool met) {
    for (std::uint32_t const id : releases.all)
      open.emplace_back(id, met || contains(releases.fenced, id));
  };
  go_on(later, fenced);
  while (!open.empty()) {
    auto const [id, met] = open.back();
    open.pop_back();
    if (walked[id][met]) continue;
    walked[id][met] = true;
    if (visit(id, met)) return;
    go_on(releases_[id].before, met);
  }
}

void GlobalOrder::add_past(std::vector<std::uint32_t> const& releases, Bits& set) const {
  // The latest first: most of the others are ordered before them.
  for (auto id = releases.rbegin(); id != releases.rend(); ++id) {
    std::size_t const at = *id / 64;
    std::uint64_t const bit = std::uint64_t{1} << *id % 64;
    if (at < set.size() && (set[at] & bit) != 0) continue;
    Bits const& before = before_[*id];
    if (set.size() <= at) set.resize(at + 1);
    for (std::size_t i = 0; i < before.size(); ++i) set[i] |= before[i];
    set[at] |= bit;
  }
}

std::uint32_t GlobalOrder::add(Release release) {
  Bits before;
  add_past(release.before.all, before);
  before_.push_back(std::move(before));
  releases_.push_back(std::move(release));
  return static_cast<std::uint32_t>(releases_.size() - 1);
}

bool GlobalOrder::reaches(Releases const& later, Releases const& earlier, bool fenced) const {
  if (later.all.empty() || earlier.all.empty()) return false;
  if (!fenced) {
    Bits past;
    add_past(later.all, past);
    return std::any_of(earlier.all.begin(), earlier.all.end(), [&](std::uint32_t id) {
      return id / 64 < past.size() && (past[id / 64] >> id % 64 & 1) != 0;
    });
  }
  bool found = false;
  Walked walked;
  walk_back(later, false, walked, [&](std::uint32_t id, bool met) {
    found = contains(met ? earlier.all : earlier.fenced, id);
    return found;
  });
  return found;
}

CausalPast GlobalOrder::past_of(std::int64_t cluster, Releases const& later, Walked& walked) const {
  CausalPast past;
  walk_back(later, false, walked, [&](std::uint32_t id, bool met) {
    Release const& release = releases_[id];
    if (release.cluster != cluster) return false;
    past.add(release.past);
    if (met) past.add({{}, release.past.known});
    return false;
  });
  return past;
}

void ClusterOrder::start(GlobalOrder& order, std::int64_t cluster, bool strict) {
  order_ = &order;
  cluster_ = cluster;
  strict_ = strict;
  threads_.clear();
  observers_.clear();
  acquires_.clear();
  acquirers_.clear();
  learnt_.clear();
  foreign_of_learnt_.clear();
  walked_.clear();
  own_.clear();
  foreign_numbers_.clear();
  foreign_numbers_.emplace(Releases{}, 0);
  cover_numbers_ = foreign_numbers_;
  cover_of_access_.clear();
  reads_.clear();
  seen_numbers_.clear();
  seen_numbers_.emplace(std::vector<Seen>{}, 0);
  seen_.assign(1, {});
  foreigns_.assign(1, {});
  covers_ = foreigns_;
}

std::vector<std::uint32_t> ClusterOrder::take(GlobalActor const& who,
                                              std::vector<std::uint32_t> const& releases,
                                              bool of_cta, Site const& by) {
  Acquire acquire{who.agent, who.time, {}, who.cta, who.thread, by};
  std::vector<std::uint32_t> left;
  for (std::uint32_t const id : releases) {
    Release const& release = order_->release(id);
    if (release.cluster == cluster_) continue;
    if (of_cta || release.of_cta) {
      order_->add({release.cluster, cluster_, release.of_cta ? release.by : by});
      left.push_back(id);
    } else {
      add(acquire.releases, id);
    }
  }
  if (acquire.releases.empty()) return left;
  auto earlier = std::find_if(acquirers_.begin(), acquirers_.end(),
                              [&](Acquirer const& a) { return a.agent == who.agent; });
  if (earlier == acquirers_.end()) earlier = acquirers_.insert(earlier, {who.agent, {}});
  if (!earlier->acquires.empty()) {
    std::vector<std::uint32_t> const& known = acquires_[earlier->acquires.back()].releases;
    if (std::includes(known.begin(), known.end(), acquire.releases.begin(), acquire.releases.end()))
      return left;  // who polls a word acquires the same again and again
    add(acquire.releases, known);
  }
  earlier->acquires.push_back(static_cast<std::uint32_t>(acquires_.size()));
  acquires_.push_back(std::move(acquire));
  return left;
}

CausalPast ClusterOrder::own_past(GlobalActor const& who) {
  if (acquires_.empty() || acquires_.back().agent != who.agent || acquires_.back().time != who.time)
    return {};
  return order_->past_of(cluster_, {acquires_.back().releases, {}}, walked_[who.agent]);
}

void ClusterOrder::fence(GlobalActor const& who, Scope scope, SourceLocation where,
                         CausalPast past) {
  ThreadState& state = this->state(who);
  bool const of_cta = !reaches_clusters(scope);
  Site const by{where, Instruction::fence, {scope}};
  if (!strict_ && !of_cta) observe_others(who, state);
  state.observed = take(who, state.observed, of_cta, by);
  // A wide fence goes on to release what came before it.
  if (of_cta && state.fence && !state.fence->of_cta) return;
  if (state.release) state.previous = state.release;
  state.release.reset();
  state.fence = Release{cluster_, who.cta, who.thread, of_cta, by, std::move(past), {}};
  state.fenced_by = who;
}

/// What other threads of the CTA have fenced, each for itself, and the thread knows since: programs
/// fence in every thread, meet at a barrier, and have one thread tell the other CTAs (CUDA's
/// threadFenceReduction sample). False where there is nothing new.
bool ClusterOrder::take_others(GlobalActor const& who, ThreadState& state) {
  bool any = false;
  for (auto const& [number, other] : threads_) {
    if (&other == &state || !other.fence || other.fence->of_cta || other.fence->cta != who.cta)
      continue;
    GlobalActor const& by = other.fenced_by;
    std::uint32_t& taken = state.taken[number];
    if (by.time <= taken ||
        !who.causality->known(who.knower, static_cast<int>(by.agent), static_cast<Time>(by.time)))
      continue;
    if (!any && (!state.fence || state.fence->of_cta)) {
      state.fence =
          Release{cluster_, who.cta, who.thread, false, other.fence->by, other.fence->past, {}};
    } else {
      state.fence->past.add(other.fence->past);
    }
    any = true;
    taken = by.time;
  }
  return any;
}

/// What other threads of the CTA have observed, and the thread knows of since: programs have one
/// thread count a counter up, meet at a barrier, and fence in every thread (PyTorch's Reduce.cuh).
void ClusterOrder::observe_others(GlobalActor const& who, ThreadState& state) {
  for (int const number : observers_) {
    ThreadState const& other = threads_[number];
    if (&other == &state || number / 1024 != who.cta) continue;
    std::size_t& taken = state.overseen[number];
    for (; taken < other.seen.size(); ++taken) {
      Observed const& seen = other.seen[taken];
      if (!who.causality->known(who.knower, static_cast<int>(other.agent),
                                static_cast<Time>(seen.time)))
        break;
      add(state.observed, seen.release);
    }
  }
}

std::vector<ClusterOrder::Observed> ClusterOrder::observed() const {
  std::vector<Observed> all;
  for (int const number : observers_) {
    std::vector<Observed> const& seen = threads_.at(number).seen;
    all.insert(all.end(), seen.begin(), seen.end());
  }
  return all;
}

std::vector<std::uint32_t> const& ClusterOrder::observe(GlobalActor const& who,
                                                        WordAccess const& access) {
  static std::vector<std::uint32_t> const none;
  GlobalOrder::Word const& word = order_->at(access.address);
  if (!access.reads || access.bytes != word.bytes) return none;
  if (!access.narrow) {
    std::vector<Read>& reads = reads_[access.address];
    auto own = std::find_if(reads.begin(), reads.end(),
                            [&](Read const& read) { return read.agent == who.agent; });
    if (own == reads.end()) own = reads.insert(own, Read{});
    *own = {who.agent, who.time, {access.address, word.store, number_}};
  }
  return word.releases;
}

std::uint32_t ClusterOrder::seen(GlobalActor const& who, std::uintptr_t address,
                                 std::size_t bytes) {
  if (reads_.empty() || address + bytes <= reads_.begin()->first ||
      address > reads_.rbegin()->first)
    return 0;
  std::vector<Seen> set;
  for (auto at = reads_.lower_bound(address); at != reads_.end() && at->first < address + bytes;
       ++at) {
    Seen latest;
    for (Read const& read : at->second) {
      if (read.seen.last > latest.last &&
          who.causality->known(who.knower, static_cast<int>(read.agent),
                               static_cast<Time>(read.time)))
        latest = read.seen;
    }
    if (latest.last != 0) set.push_back(latest);
  }
  return number_of(set, seen_numbers_, seen_);
}

void ClusterOrder::publish(GlobalActor const& who, WordAccess const& access,
                           std::optional<std::uint32_t> release) {
  GlobalOrder::Word& word = order_->at(access.address);
  bool const goes_on = access.modifies && access.bytes == word.bytes && !access.narrow;
  if (!goes_on) {
    word.releases.clear();
    word.store = number_;
  }
  word.bytes = access.bytes;
  word.writes[{cluster_, who.foreign}] = access.narrow ? GlobalOrder::kNever : number_;
  if (access.narrow) {
    if (release) add(word.releases, *release);
    return;
  }
  auto& released = state(who).released;
  if (!release && !released.contains(access.address)) return;
  std::vector<std::uint32_t>& own = released[access.address];
  if (release && !contains(own, *release)) {
    Release const& later = order_->release(*release);
    std::erase_if(own, [&](std::uint32_t id) {
      Release const& earlier = order_->release(id);
      bool const included = (!later.of_cta || earlier.of_cta) && later.past.includes(earlier.past);
      if (included) std::erase(word.releases, id);
      return included;
    });
    add(own, *release);
  }
  for (std::uint32_t const id : own) add(word.releases, id);
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

void ClusterOrder::look(GlobalActor const& who, WordAccess const& access, bool acquires) {
  number_ = order_->next_number();
  std::vector<std::uint32_t> const& releases = observe(who, access);
  if (acquires || access.narrow) {
    take(who, releases, access.narrow, access.by);
    return;
  }
  ThreadState& state = this->state(who);
  for (std::uint32_t const id : releases) {
    add(state.observed, id);
    if (order_->release(id).cluster == cluster_ || contains(state.seen_ids, id)) continue;
    add(state.seen_ids, id);
    if (state.seen.empty()) observers_.push_back(who.cta * 1024 + who.thread);
    state.agent = who.agent;
    state.seen.push_back({id, who.time, who.cta, who.thread, access.by});
  }
}

void ClusterOrder::put(GlobalActor const& who, WordAccess const& access,
                       std::optional<CausalPast> past) {
  if (!access.writes) {
    if (strong_writes(access.by.instruction))
      order_->at(access.address).writes[{cluster_, who.foreign}] = GlobalOrder::kNever;
    return;
  }
  if (past) {
    own_.push_back(order_->add({cluster_, who.cta, who.thread, access.narrow, access.by,
                                *std::move(past), foreigns_[foreign(who)]}));
    return publish(who, access, own_.back());
  }
  ThreadState& state = this->state(who);
  if (!strict_ && take_others(who, state) && state.release) {
    state.previous = state.release;
    state.release.reset();
  }
  if (!state.fence) return publish(who, access, {});
  if (access.narrow) {
    // It releases to its own CTA; this one is for what a finding says of the scope.
    Release release = *state.fence;
    release.of_cta = true;
    release.by = access.by;
    return publish(who, access, order_->add(std::move(release)));
  }
  if (!state.release) {
    Release release = *state.fence;
    release.before = foreigns_[foreign(who)];
    if (state.previous) add(release.before.all, *state.previous);
    state.release = order_->add(std::move(release));
    own_.push_back(*state.release);
  }
  publish(who, access, state.release);
}

/// What a thread knows grows, and so do the releases that an agent has acquired: by agent, the
/// number of its acquires that the thread knows says it all. They are looked for where the thread
/// has come to know something since.
std::uint32_t ClusterOrder::foreign(GlobalActor const& who) {
  if (acquires_.empty()) return 0;
  Causality const& causality = *who.causality;
  Learnt& learnt = learnt_[who.knower];
  if (learnt.acquires == acquires_.size() && causality.knows_as(who.knower, learnt.knowledge))
    return learnt.foreign;
  learnt.acquires = acquires_.size();
  learnt.knowledge = causality.snapshot(who.knower);
  bool any = learnt.of_agents.size() < acquirers_.size();
  learnt.of_agents.resize(acquirers_.size());
  for (std::size_t i = 0; i < acquirers_.size(); ++i) {
    auto& [known, fenced] = learnt.of_agents[i];
    auto const agent = static_cast<int>(acquirers_[i].agent);
    std::vector<std::uint32_t> const& own = acquirers_[i].acquires;
    auto const time = [&](std::size_t at) { return static_cast<Time>(acquires_[own[at]].time); };
    for (; known < own.size() && causality.known(who.knower, agent, time(known)); any = true)
      ++known;
    for (; fenced < known && causality.fenced(who.knower, agent, time(fenced)); any = true)
      ++fenced;
  }
  if (!any) return learnt.foreign;
  auto const [place, is_new] = foreign_of_learnt_.try_emplace(learnt.of_agents, 0);
  if (is_new) {
    Releases set;
    for (std::size_t i = 0; i < acquirers_.size(); ++i) {
      auto const [known, fenced] = learnt.of_agents[i];
      std::vector<std::uint32_t> const& own = acquirers_[i].acquires;
      if (known != 0) add(set.all, acquires_[own[known - 1]].releases);
      if (fenced != 0) add(set.fenced, acquires_[own[fenced - 1]].releases);
    }
    place->second = number_of(set, foreign_numbers_, foreigns_);
  }
  return learnt.foreign = place->second;
}

std::uint32_t ClusterOrder::cover(std::uint32_t agent, std::uint32_t time) {
  if (own_.empty() || agent == GlobalShadow::kNobody) return 0;
  if (covered_of_ != own_.size()) cover_of_access_.clear(), covered_of_ = own_.size();
  // A large copy asks for each of its words.
  auto const [place, is_new] = cover_of_access_.try_emplace(std::uint64_t{agent} << 32 | time, 0);
  if (!is_new) return place->second;
  Releases set;
  for (std::uint32_t const id : own_) {
    CausalPast const& past = order_->release(id).past;
    if (past.covers(agent, time)) add(set.all, id);
    if (past.covers_fenced(agent, time)) add(set.fenced, id);
  }
  return place->second = number_of(set, cover_numbers_, covers_);
}

}  // namespace tegula::sim
