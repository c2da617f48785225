#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

/// Which accesses happen before what a thread does now: causality order of the PTX ISA ("Memory
/// Consistency Model"), for the threads of one cluster.
///
/// An *agent* is somebody who accesses memory: a thread, or an mbarrier for the asynchronous copies
/// that complete on it. An access is stamped with its agent and the time; the cluster's one clock
/// goes on with each release. A thread *knows* an access by agent u at time t where it happens
/// before all that the thread does from now on: where t is no later than its entry for u in a
/// vector of times, one for each agent. A release publishes the vector, an acquire takes the
/// element-wise maximum. A second vector, `fenced_shared`, is the part of the first on whose way
/// lies a fence.proxy.async: what the asynchronous proxy sees of what was written to shared memory
/// through the generic one ("Proxy-preserved Base Causality Order"). One with .shared::cta orders
/// that memory alone; a third vector, `fenced`, is the part with a fence of all memory.
namespace tegula::sim {

/// A moment of the cluster's clock; the first is 1, and 0 is before all of them.
using Time = std::int32_t;

/// A vector of times, one for each agent; those that it does not reach are 0. Copies share their
/// elements until one of them is written to.
class Times {
 public:
  Times() = default;
  Times(Times const& other) : block_(other.block_) {
    if (block_ != nullptr) ++block_->references;
  }
  Times(Times&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  Times& operator=(Times other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~Times() {
    if (block_ != nullptr && --block_->references == 0) recycle(block_);
  }

  Time operator[](int agent) const {
    return block_ != nullptr && agent < block_->size ? block_->at[agent] : 0;
  }
  bool same_as(Times const& other) const { return block_ == other.block_; }
  bool empty() const { return block_ == nullptr; }
  void clear() { *this = Times(); }

 private:
  friend class Causality;
  struct Pool;
  struct Block {
    Pool* pool;
    Block* next;  ///< in the pool
    std::int32_t references;
    std::int32_t size;
    alignas(32) Time at[1];  ///< `size` of them
  };
  /// Blocks to be used again, all of one size.
  struct Pool {
    Block* first = nullptr;
    std::int32_t size = 0;
    std::size_t blocks = 0;  ///< in use or not
    ~Pool();
  };
  static void recycle(Block* block) noexcept;

  Block* block_ = nullptr;
};

/// What releases have published for those who will acquire it.
struct Published {
  Times known;
  Times fenced_shared;
  Times fenced;
  Times seen;  ///< what is over, though by a release of too narrow a scope to order more than that

  void clear() { *this = {}; }
};

class Causality {
 public:
  /// Nobody knows anything; the agents are `threads` threads, and others after them.
  void start(int threads, int others = 0);
  /// One agent more; `generic`: it accesses memory through the generic proxy, as threads do.
  int add_agent(bool generic = false);
  bool is_generic(int agent) const {
    return agent < threads() || generic_agents_[static_cast<std::size_t>(agent - threads())];
  }
  int agents() const { return agents_; }
  int threads() const { return static_cast<int>(threads_.size()); }
  Time now() const { return now_; }
  /// The clock goes on; returns what it was.
  Time tick() { return now_++; }

  /// Whether the agent's access at the time happens before what the thread does now.
  bool known(int thread, int agent, Time time) const {
    return agent == thread || of(thread).known[agent] >= time;
  }
  /// Likewise with a fence.proxy.async of all memory in between; the agent is a thread.
  bool fenced(int thread, int agent, Time time) const {
    Knowledge const& own = of(thread);
    return (agent == thread && own.own_fence >= time) || own.fenced[agent] >= time;
  }
  /// Likewise with one that orders shared memory, by any agent.
  bool fenced_shared(int thread, int agent, Time time) const {
    Knowledge const& own = of(thread);
    return (agent == thread && own.own_shared_fence >= time) || own.fenced_shared[agent] >= time;
  }
  /// Whether the agent's access at the time is over for the thread: known, or followed by a release
  /// whose scope does not reach the thread. That is what practice takes to be enough for reads, and
  /// for copies that somebody has seen complete.
  bool seen(int thread, int agent, Time time) const {
    return known(thread, agent, time) || of(thread).seen[agent] >= time;
  }
  /// Up to when the agent's accesses are known to the thread.
  Time known_time(int thread, int agent) const {
    return agent == thread ? now_ : of(thread).known[agent];
  }
  /// As known and fenced_shared, for other threads that know the same as this one.
  bool known_to_others(int thread, int agent, Time time) const {
    return of(thread).known[agent] >= time;
  }
  bool seen_by_others(int thread, int agent, Time time) const {
    return of(thread).known[agent] >= time || of(thread).seen[agent] >= time;
  }
  bool fenced_shared_for_others(int thread, int agent, Time time) const {
    return of(thread).fenced_shared[agent] >= time;
  }
  /// What a thread knows, and has fenced, at a moment.
  struct Snapshot {
    Times known;
    Times fenced;
    Time own_fence = 0;
  };
  Snapshot snapshot(int thread) const {
    return {of(thread).known, of(thread).fenced, of(thread).own_fence};
  }
  /// Whether the thread knows no more than then. (A vector that a snapshot shares is not written.)
  bool knows_as(int thread, Snapshot const& then) const {
    Knowledge const& own = of(thread);
    return own.known.same_as(then.known) && own.fenced.same_as(then.fenced) &&
           own.own_fence == then.own_fence;
  }
  /// All that the thread knows, but for its own accesses.
  Times const& knowledge(int thread) const { return of(thread).known; }
  /// Whether two threads know the same but for what they did themselves.
  bool same_knowledge(int one, int other) const {
    return of(one).known.same_as(of(other).known) &&
           of(one).fenced_shared.same_as(of(other).fenced_shared) &&
           of(one).fenced.same_as(of(other).fenced) && of(one).seen.same_as(of(other).seen);
  }

  /// The thread publishes what it knows and did.
  void release(int thread, Published& into);
  /// Likewise for lanes of a warp, given by its first thread; one event.
  void release(int first, std::uint32_t lanes, Published& into);
  /// As release, at a scope that leaves out those who will acquire it: for seen() alone.
  void release_narrow(int thread, Published& into);
  /// The thread comes after what was published.
  void acquire(int thread, Published const& from);
  void acquire(int first, std::uint32_t lanes, Published const& from);
  /// The thread comes after what each agent, by number, did up to a time; and with a
  /// fence.proxy.async of all memory since. Of those of shared memory it learns the agent's own.
  void learn(int thread, std::vector<Time> const& known, std::vector<Time> const& fenced);
  /// Lanes of a warp synchronise with each other.
  void synchronize(int first, std::uint32_t lanes);
  /// fence.proxy.async by the thread; with .shared::cta.
  void fence_proxy(int thread);
  void fence_shared_proxy(int thread);
  /// A fence between threads (fence.acq_rel, fence.sc) by the thread: what it knows and did is
  /// published by its relaxed releases from now on, and what it has taken by relaxed acquires it
  /// now comes after. (PTX ISA, "Release and Acquire Patterns".) One of the CTA's scope does
  /// neither for other CTAs: `to_others` are releases that other CTAs may acquire, `from_others`
  /// what they have released.
  void fence_threads(int thread, bool of_cta = false);
  void release_relaxed(int thread, Published& into, bool to_others = false);
  void acquire_relaxed(int thread, Published const& from, bool from_others = false);
  /// As release_relaxed, of what the fences of `count` threads, from `first` on, have published
  /// that the thread knows to be over.
  void release_fenced(int thread, int first, int count, Published& into, bool to_others);
  /// Tells the thread, or those who will acquire `into`, of an agent's accesses to shared memory up
  /// to a time, with a fence.
  void tell(int thread, int agent, Time time);
  void tell(Published& into, int agent, Time time);
  /// Likewise without a fence.
  void tell_generic(int thread, int agent, Time time) { set(of(thread).known, agent, time); }
  void tell_generic(Published& into, int agent, Time time) { set(into.known, agent, time); }
  /// One published set of knowledge more.
  void merge(Published& into, Published const& from);

  /// Bytes of the vectors that exist.
  std::size_t bytes() const;

 private:
  struct Knowledge {
    Times known;  ///< but for its own accesses, all of which it knows
    Times fenced_shared;
    Times fenced;
    Times seen;                 ///< beside what is known
    Time own_shared_fence = 0;  ///< its own accesses to shared memory up to then are fenced,
    Time own_fence = 0;         ///< and those to all memory
    /// Of its latest fence between threads, and of its relaxed acquires since; null where there
    /// are none.
    struct Fence {
      Published before;
      Published before_wide;  ///< of its latest fence of a wider scope than the CTA's
      Time time = 0;          ///< of its latest fence,
      Time wide_time = 0;     ///< and of that one
      Published taken;
      Published taken_from_others;
    };
    std::unique_ptr<Fence> fence;
  };
  /// The latest maxima that were computed: lanes of a warp mostly ask for the same ones.
  struct Maximum {
    Times one;
    Times other;
    Times both;
  };

  Knowledge& of(int thread) { return threads_[static_cast<std::size_t>(thread)]; }
  Knowledge const& of(int thread) const { return threads_[static_cast<std::size_t>(thread)]; }
  Times::Block* make();
  /// Makes the vector its own, long enough for every agent.
  void own(Times& times);
  void set(Times& times, int agent, Time time);
  void join(Times& times, Times const& other);
  void forget();

  Times::Pool pool_;
  std::vector<Knowledge> threads_;
  Maximum recent_[2];
  int next_recent_ = 0;
  int agents_ = 0;
  std::vector<bool> generic_agents_;  ///< of those that are no threads
  Time now_ = 1;
};

}  // namespace tegula::sim
