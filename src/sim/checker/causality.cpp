#include "checker/causality.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>
#include <new>

namespace tegula::sim {

namespace {

/// Times in a group that is computed at once.
constexpr int kGroup = 4;
using Group [[gnu::vector_size(sizeof(Time) * kGroup)]] = Time;

/// Agents beyond this share one number: a stamp has 16 bits for it.
constexpr int kMostAgents = 0xfff0;

Group load(Time const* from) {
  Group group;
  std::memcpy(&group, from, sizeof group);
  return group;
}

}  // namespace

void Times::recycle(Block* block) noexcept {
  Pool& pool = *block->pool;
  if (block->size == pool.size) {
    block->next = pool.first;
    pool.first = block;
  } else {
    --pool.blocks;
    ::operator delete (block, std::align_val_t{alignof(Block)});
  }
}

Times::Pool::~Pool() {
  for (; first != nullptr; --blocks)
    ::operator delete (std::exchange(first, first->next), std::align_val_t{alignof(Block)});
  assert(blocks == 0 && "vectors of times have outlived their pool");
}

void Causality::forget() {
  threads_.clear();
  for (Maximum& maximum : recent_) maximum = {};
}

void Causality::start(int threads, int others) {
  forget();
  agents_ = threads + others;
  generic_agents_.assign(static_cast<std::size_t>(others), false);
  // With room for as many mbarriers as most kernels have.
  int const size = (agents_ + 64) / kGroup * kGroup;
  if (size != pool_.size) {
    while (pool_.first != nullptr) {
      ::operator delete (std::exchange(pool_.first, pool_.first->next),
                         std::align_val_t{alignof(Times::Block)});
      --pool_.blocks;
    }
    pool_.size = size;
  }
  threads_.resize(static_cast<std::size_t>(threads));
  now_ = 1;
}

int Causality::add_agent(bool generic) {
  if (agents_ == kMostAgents) return agents_ - 1;
  generic_agents_.push_back(generic);
  int const agent = agents_++;
  if (agents_ > pool_.size) {
    while (pool_.first != nullptr) {
      ::operator delete (std::exchange(pool_.first, pool_.first->next),
                         std::align_val_t{alignof(Times::Block)});
      --pool_.blocks;
    }
    pool_.size = (2 * agents_ + kGroup) / kGroup * kGroup;
  }
  return agent;
}

Times::Block* Causality::make() {
  Times::Block* block = pool_.first;
  if (block != nullptr) {
    pool_.first = block->next;
  } else {
    std::size_t const bytes =
        offsetof(Times::Block, at) + sizeof(Time) * static_cast<std::size_t>(pool_.size);
    block =
        static_cast<Times::Block*>(::operator new (bytes, std::align_val_t{alignof(Times::Block)}));
    block->pool = &pool_;
    block->size = pool_.size;
    ++pool_.blocks;
  }
  block->next = nullptr;
  block->references = 1;
  return block;
}

void Causality::own(Times& times) {
  Times::Block const* const old = times.block_;
  if (old != nullptr && old->references == 1 && old->size == pool_.size) return;
  Times made;
  made.block_ = make();
  int const kept = old != nullptr ? old->size : 0;
  if (kept != 0)
    std::memcpy(made.block_->at, old->at, sizeof(Time) * static_cast<std::size_t>(kept));
  std::fill(made.block_->at + kept, made.block_->at + pool_.size, 0);
  times = std::move(made);
}

void Causality::set(Times& times, int agent, Time time) {
  if (times[agent] >= time) return;
  own(times);
  times.block_->at[agent] = time;
}

void Causality::join(Times& times, Times const& other) {
  if (other.empty() || times.same_as(other)) return;
  if (times.empty()) {
    times = other;
    return;
  }
  bool const in_place = times.block_->references == 1 && times.block_->size >= other.block_->size;
  if (!in_place) {
    for (Maximum const& maximum : recent_) {
      if (maximum.one.same_as(times) && maximum.other.same_as(other)) {
        times = maximum.both;
        return;
      }
    }
  }
  Times one = in_place ? Times() : times;
  if (!in_place) {
    // Of the two, the longer one is copied.
    bool const longer = times.block_->size >= other.block_->size;
    Times made = longer ? times : other;
    own(made);
    times = std::move(made);
    Time* const into = times.block_->at;
    Times const& rest = longer ? other : one;
    Group more_than_one{};
    Group more_than_other{};
    for (int i = 0; i < rest.block_->size; i += kGroup) {
      Group const a = load(into + i);
      Group const b = load(rest.block_->at + i);
      more_than_one |= b > a;
      more_than_other |= a > b;
      Group const both = a > b ? a : b;
      std::memcpy(into + i, &both, sizeof both);
    }
    // Where one of them is the maximum, it is shared.
    auto const any = [](Group const& group) {
      Time bits = 0;
      for (int i = 0; i < kGroup; ++i) bits |= group[i];
      return bits != 0;
    };
    if (one.block_->size == other.block_->size) {
      if (!any(more_than_one)) {
        times = one;
      } else if (!any(more_than_other)) {
        times = other;
      }
    }
    recent_[next_recent_] = {std::move(one), other, times};
    next_recent_ ^= 1;
    return;
  }
  Time* const into = times.block_->at;
  for (int i = 0; i < other.block_->size; i += kGroup) {
    Group const a = load(into + i);
    Group const b = load(other.block_->at + i);
    Group const both = a > b ? a : b;
    std::memcpy(into + i, &both, sizeof both);
  }
}

void Causality::release(int thread, Published& into) {
  Knowledge const& own = of(thread);
  join(into.known, own.known);
  join(into.fenced_shared, own.fenced_shared);
  join(into.fenced, own.fenced);
  join(into.seen, own.seen);
  set(into.known, thread, now_);
  set(into.fenced_shared, thread, own.own_shared_fence);
  set(into.fenced, thread, own.own_fence);
  ++now_;
}

void Causality::release(int first, std::uint32_t lanes, Published& into) {
  Knowledge const* before = nullptr;
  for (std::uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    Knowledge const& own = of(first + std::countr_zero(rest));
    if (before == nullptr || !before->known.same_as(own.known)) join(into.known, own.known);
    if (before == nullptr || !before->fenced_shared.same_as(own.fenced_shared))
      join(into.fenced_shared, own.fenced_shared);
    if (before == nullptr || !before->fenced.same_as(own.fenced)) join(into.fenced, own.fenced);
    if (before == nullptr || !before->seen.same_as(own.seen)) join(into.seen, own.seen);
    before = &own;
  }
  for (std::uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    int const thread = first + std::countr_zero(rest);
    set(into.known, thread, now_);
    set(into.fenced_shared, thread, of(thread).own_shared_fence);
    set(into.fenced, thread, of(thread).own_fence);
  }
  ++now_;
}

void Causality::acquire(int thread, Published const& from) {
  Knowledge& own = of(thread);
  join(own.known, from.known);
  join(own.fenced_shared, from.fenced_shared);
  join(own.fenced, from.fenced);
  join(own.seen, from.seen);
}

void Causality::learn(int thread, std::vector<Time> const& known, std::vector<Time> const& fenced) {
  for (int agent = 0; agent < static_cast<int>(known.size()); ++agent) {
    Time const time = known[static_cast<std::size_t>(agent)];
    set(of(thread).known, agent, time);
    // Copies need no fence.
    Time const own_fence = agent < threads()   ? of(agent).own_shared_fence
                           : is_generic(agent) ? 0
                                               : time;
    set(of(thread).fenced_shared, agent, std::min(time, own_fence));
  }
  for (int agent = 0; agent < static_cast<int>(fenced.size()); ++agent) {
    set(of(thread).fenced_shared, agent, fenced[static_cast<std::size_t>(agent)]);
    set(of(thread).fenced, agent, fenced[static_cast<std::size_t>(agent)]);
  }
}

void Causality::release_narrow(int thread, Published& into) {
  Knowledge const& own = of(thread);
  join(into.seen, own.known);
  join(into.seen, own.seen);
  join(into.fenced_shared, own.fenced_shared);
  join(into.fenced, own.fenced);
  set(into.seen, thread, now_);
  set(into.fenced_shared, thread, own.own_shared_fence);
  set(into.fenced, thread, own.own_fence);
  ++now_;
}

void Causality::acquire(int first, std::uint32_t lanes, Published const& from) {
  for (std::uint32_t rest = lanes; rest != 0; rest &= rest - 1)
    acquire(first + std::countr_zero(rest), from);
}

void Causality::synchronize(int first, std::uint32_t lanes) {
  Published all;
  release(first, lanes, all);
  for (std::uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    Knowledge& own = of(first + std::countr_zero(rest));
    own.known = all.known;
    own.fenced_shared = all.fenced_shared;
    own.fenced = all.fenced;
    own.seen = all.seen;
  }
}

void Causality::fence_threads(int thread, bool of_cta) {
  Knowledge& own = of(thread);
  if (own.fence == nullptr) own.fence = std::make_unique<Knowledge::Fence>();
  acquire(thread, own.fence->taken);
  own.fence->taken.clear();
  if (!of_cta) {
    acquire(thread, own.fence->taken_from_others);
    own.fence->taken_from_others.clear();
  }
  own.fence->before.clear();
  own.fence->time = now_;
  release(thread, own.fence->before);
  if (of_cta) return;
  own.fence->before_wide = own.fence->before;
  own.fence->wide_time = own.fence->time;
}

void Causality::release_fenced(int thread, int first, int count, Published& into, bool to_others) {
  for (int other = first; other < first + count; ++other) {
    Knowledge::Fence const* const fence = of(other).fence.get();
    if (fence == nullptr || other == thread) continue;
    Time const time = to_others ? fence->wide_time : fence->time;
    if (time != 0 && known(thread, other, time))
      merge(into, to_others ? fence->before_wide : fence->before);
  }
}

void Causality::release_relaxed(int thread, Published& into, bool to_others) {
  Knowledge::Fence const* const fence = of(thread).fence.get();
  if (fence != nullptr) merge(into, to_others ? fence->before_wide : fence->before);
}

void Causality::acquire_relaxed(int thread, Published const& from, bool from_others) {
  Knowledge& own = of(thread);
  if (own.fence == nullptr) own.fence = std::make_unique<Knowledge::Fence>();
  merge(from_others ? own.fence->taken_from_others : own.fence->taken, from);
}

void Causality::fence_proxy(int thread) {
  Knowledge& own = of(thread);
  own.fenced = own.known;
  own.own_fence = now_;
  fence_shared_proxy(thread);
}

void Causality::fence_shared_proxy(int thread) {
  Knowledge& own = of(thread);
  own.fenced_shared = own.known;
  own.own_shared_fence = now_++;
}

void Causality::tell(int thread, int agent, Time time) {
  set(of(thread).known, agent, time);
  set(of(thread).fenced_shared, agent, time);
}

void Causality::tell(Published& into, int agent, Time time) {
  set(into.known, agent, time);
  set(into.fenced_shared, agent, time);
}

void Causality::merge(Published& into, Published const& from) {
  join(into.known, from.known);
  join(into.fenced_shared, from.fenced_shared);
  join(into.fenced, from.fenced);
  join(into.seen, from.seen);
}

std::size_t Causality::bytes() const {
  return pool_.blocks *
         (offsetof(Times::Block, at) + sizeof(Time) * static_cast<std::size_t>(pool_.size));
}

}  // namespace tegula::sim
