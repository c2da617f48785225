#include "machine/cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <exception>

#include "machine/baton.hpp"
#include "machine/turn_keeper.hpp"
#include "values/mix.hpp"

namespace tegula::sim {

namespace {

/// Reads of one address in a row by one thread, after which it counts as waiting for that memory to
/// change, and lets others run.
constexpr int kReadsBeforeYield = 16;
/// Such reads, by any threads, with nobody doing anything else in between, after which the cluster
/// counts as stuck.
constexpr std::int64_t kIdleReads = 1 << 20;
/// So much sooner where no other thread of the cluster can run.
constexpr std::int64_t kSoonerAlone = 8;
/// So many times in a row a try_wait may give up, before its thread counts as stuck, too.
constexpr std::int64_t kMostGivenUpWaits = 1 << 12;
/// So many times in a row a cluster may let others run that do nothing either, before it counts
/// as stuck.
constexpr std::int64_t kMostIdleTurns = 1 << 10;
/// Accesses that other clusters notice, after which one lets them run in any case.
constexpr std::uint32_t kAccessesOfATurn = 256;

/// The first bit that is set, from bit `first` on, going round.
int next_bit(std::uint32_t bits, int first) {
  return (std::countr_zero(std::rotr(bits, first)) + first) % 32;
}

}  // namespace

Cluster::~Cluster() {
  closing_ = true;
  for (auto const& cta : ctas_) {
    for (auto const& thread : cta->threads_) switcher_.switch_to(host_, thread->context);
  }
}

std::vector<Finding> Cluster::run(LaunchContext const& launch, std::int64_t index,
                                  std::int64_t place) {
  place_ = place;
  start(launch, index);
  current_ = &cta(0).thread(0);
  set_running_cta(&cta(0));
  switcher_.switch_to(host_, current_->context);
  set_running_cta(nullptr);
  in_flight_.finish(aborting_);
  current_ = nullptr;
  observers_.finish(*this);
  return std::move(findings_);
}

void Cluster::start(LaunchContext const& launch, std::int64_t index) {
  launch_ = &launch;
  Options const& options = *launch.options;
  Dim3 const extents = launch.kernel->cluster;
  index_ = index;
  count_ = extents.x * extents.y * extents.z;
  completion_ = options.completion;
  interleaving_ = options.interleaving;
  random_state_ = mix(options.seed * 0x9e3779b97f4a7c15ull + static_cast<std::uint64_t>(index)) | 1;
  aborting_ = false;
  has_turn_ = false;
  moved_ = true;
  strong_accesses_ = 0;
  most_steps_ = options.most_steps;
  stuck_at_ = nullptr;
  idle_reads_ = 0;
  ready_ctas_ = 0;
  findings_.clear();

  int const warps = count_ * launch.kernel->threads / 32;
  barrier_ = {0, warps, warps};
  live_threads_ = count_ * launch.kernel->threads;
  while (static_cast<int>(ctas_.size()) < count_)
    ctas_.push_back(std::make_unique<Cta>(*this, static_cast<int>(ctas_.size())));
  for (int rank = 0; rank < count_; ++rank) {
    add_threads(cta(rank), launch.kernel->threads);
    cta(rank).start(launch, cta_index(launch, index, rank));
  }
  timed_ = options.trace && index * count_ < options.trace->ctas;
  if (timed_) {
    completion_ = Completion::first;
    interleaving_ = Interleaving::one_warp_ahead;
  }
  behind_ = nullptr;
  if (interleaving_ == Interleaving::one_warp_behind) {
    int const of_cta = launch.kernel->threads / 32;
    int const warp = static_cast<int>(options.seed % static_cast<std::uint64_t>(warps));
    behind_cta_ = &cta(warp / of_cta);
    behind_ = &behind_cta_->warp(warp % of_cta);
  }
  in_lane_order_ = interleaving_ != Interleaving::random && behind_ == nullptr && !timed_;
  stepped_ = launch.stepped;
  checked_ = options.check;
  if (stepped_) {
    completion_ = Completion::last;
    interleaving_ = Interleaving::one_warp_ahead;
    behind_ = nullptr;
    in_lane_order_ = true;
  }
  observers_.start(*this);
  often_ = stepped_ || !in_lane_order_ || completion_ == Completion::random;
}

Dim3 Cluster::coordinate(int rank) const {
  Dim3 const extents = launch_->kernel->cluster;
  return {rank % extents.x, rank / extents.x % extents.y, rank / extents.x / extents.y};
}

void Cluster::add_threads(Cta& cta, int count) {
  while (static_cast<int>(cta.threads_.size()) < count) {
    int const i = static_cast<int>(cta.threads_.size());
    auto thread = std::make_unique<Thread>();
    thread->cta = &cta;
    thread->index = i;
    thread->lane = i % 32;
    thread->stack = std::make_unique<FiberStack>(stack_bytes_, 7 * i);
    Thread* const self = thread.get();
    switcher_.create(self->context, *self->stack, [this, self] { thread_body(*self); });
    cta.threads_.push_back(std::move(thread));
  }
}

void Cluster::thread_body(Thread& thread) {
  while (!closing_) {
    thread.started = true;
    Cta& cta = *thread.cta;
    try {
      launch_->kernel->run(cta.shared().data());
      if (stepped_) observers_.before_exit();
    } catch (LeaveKernel const&) {
    } catch (std::exception const& e) {
      cta.report(FindingKind::exception, SourceLocation{}, cta.here(), "", "",
                 std::string("the kernel threw: ") + e.what());
      aborting_ = true;
    } catch (...) {
      cta.report(FindingKind::exception, SourceLocation{}, cta.here(), "", "",
                 "the kernel threw something that is no std::exception");
      aborting_ = true;
    }
    finish_thread(thread);
    Thread* const next = next_thread();
    if (next != nullptr) {
      current_ = next;
      set_running_cta(next->cta);
    }
    switcher_.switch_to(thread.context, next != nullptr ? next->context : host_);
  }
}

void Cluster::finish_thread(Thread& thread) {
  thread.finished = true;
  progressed();
  --live_threads_;
  try {
    if (stepped_ && !aborting_) observers_.exited(thread);
    thread.cta->finish_thread(thread);
    if (!aborting_ && ready_ctas_ == 0 && live_threads_ != 0) nobody_runs();
  } catch (LeaveKernel const&) {
  }
}

/// A warp that can run, and its CTA: from warp `first` of the given CTA on, then the CTAs after it,
/// going round.
Warp& Cluster::ready_warp_from(Cta& cta, int first, Cta*& of) {
  std::uint32_t const here = cta.ready_warps_;
  if (count_ == 1 || (here >> first) != 0) {
    of = &cta;
    return cta.warp(next_bit(here, first));
  }
  of = &this->cta(next_bit(ready_ctas_, (cta.rank() + 1) % 32));
  return of->warp(std::countr_zero(of->ready_warps_));
}

/// Who runs now that the current thread cannot: a lane of the same warp, else of the next warp,
/// else of the next CTA's. Null when nobody is left.
Thread* Cluster::next_thread() {
  Cta* cta = current_->cta;
  if (aborting_) {
    for (int i = 0; i < count_; ++i) {
      for (auto const& thread : this->cta((cta->rank() + i) % count_).threads_) {
        if (thread->started && !thread->finished) return thread.get();
      }
    }
    return nullptr;
  }
  if (ready_ctas_ == 0) return nullptr;
  if (timed_) return &earliest_thread();
  Warp* next = &cta->warp(current_->index / 32);
  if (behind_ != nullptr && (next == behind_ || next->ready == 0)) {
    if (Thread* const ahead = thread_ahead()) return ahead;
    cta = behind_cta_;
    next = behind_;
  }
  bool const at_random = interleaving_ == Interleaving::random;
  if (next->ready == 0) {
    if (at_random) return &random_thread();
    next = &ready_warp_from(*cta, next->index, cta);
  }
  return &cta->thread(*next, at_random ? random_bit(next->ready) : std::countr_zero(next->ready));
}

/// Any thread that can run, by seed: of any CTA, then of any of its warps.
Thread& Cluster::random_thread() {
  Cta& cta = this->cta(random_bit(ready_ctas_));
  Warp& warp = cta.warp(random_bit(cta.ready_warps_));
  return cta.thread(warp, random_bit(warp.ready));
}

/// One of the bits that are set, by seed.
int Cluster::random_bit(std::uint32_t bits) {
  for (auto skip = random() % static_cast<std::uint32_t>(std::popcount(bits)); skip != 0; --skip)
    bits &= bits - 1;
  return std::countr_zero(bits);
}

/// The thread that runs instead of those of the warp that stays behind: of the current warp, or of
/// the next one. Null where no other warp can run.
Thread* Cluster::thread_ahead() {
  Cta* cta = current_->cta;
  Warp& own = cta->warp(current_->index / 32);
  if (&own != behind_ && own.ready != 0) return &cta->thread(own, std::countr_zero(own.ready));
  std::uint32_t const bit = 1u << behind_->index;
  bool const was_ready = (behind_cta_->ready_warps_ & bit) != 0;
  if (was_ready) {
    behind_cta_->ready_warps_ &= ~bit;
    if (behind_cta_->ready_warps_ == 0) set_idle(behind_cta_->rank());
  }
  Thread* ahead = nullptr;
  if (ready_ctas_ != 0) {
    Warp& warp = ready_warp_from(*cta, own.index, cta);
    ahead = &cta->thread(warp, std::countr_zero(warp.ready));
  }
  if (was_ready) {
    behind_cta_->ready_warps_ |= bit;
    set_ready(behind_cta_->rank());
  }
  return ahead;
}

void Cluster::let_others_run(Visible const& what) {
  if (stepped_) return observers_.before(what);
  if (timed_) return;
  // An access to a peer's shared memory is seen twice: before the peer is known to be there,
  // and here.
  if (what.cta >= 0 && &cta(what.cta) != current_->cta &&
      (what.kind == Visible::Kind::load || what.kind == Visible::Kind::store))
    return;
  bool const access = what.kind == Visible::Kind::load || what.kind == Visible::Kind::store;
  if (completion_ == Completion::random && (!access || random() % 8 == 0))
    current_->cta->land_at_random(current_->cta->current_warp());
  if (behind_ != nullptr) {
    if (&current_->cta->current_warp() != behind_) return;
    if (Thread* const ahead = thread_ahead()) resume(*ahead);
  } else if (interleaving_ == Interleaving::random && random() % (access ? 8 : 2) == 0) {
    Thread& next = random_thread();
    if (&next != current_) resume(next);
  }
}

/// The thread with the earliest clock among those that can run; of several, one of the current
/// warp, or the first.
Thread& Cluster::earliest_thread() {
  Thread* earliest = nullptr;
  double least = 0;
  auto const consider = [&](Cta& cta, Warp const& warp) {
    for (std::uint32_t lanes = warp.ready; lanes != 0; lanes &= lanes - 1) {
      Thread& thread = cta.thread(warp, std::countr_zero(lanes));
      double const clock = observers_.clock(thread);
      if (earliest == nullptr || clock < least) earliest = &thread, least = clock;
    }
  };
  consider(*current_->cta, current_->cta->warp(current_->index / 32));
  for (int rank = 0; rank < count_; ++rank) {
    for (std::uint32_t warps = cta(rank).ready_warps_; warps != 0; warps &= warps - 1)
      consider(cta(rank), cta(rank).warp(std::countr_zero(warps)));
  }
  return *earliest;
}

void Cluster::wait_for_clock() {
  if (!timed_) return;
  for (;;) {
    Thread& next = earliest_thread();
    if (observers_.clock(next) >= observers_.clock(*current_)) return;
    resume(next);
  }
}

void Cluster::block_other(Cta& cta, Warp& own) {
  if (own.ready == 0) {
    cta.ready_warps_ &= ~(1u << own.index);
    if (cta.ready_warps_ == 0) {
      set_idle(cta.rank());
      if (ready_ctas_ == 0) nobody_runs();
    }
  }
  Thread& next = *next_thread();
  if (&next != current_) resume(next);  // else what it waited for has happened meanwhile
}

void Cluster::yield() {
  if (timed_) return wait_for_clock();
  Thread& self = *current_;
  if (interleaving_ == Interleaving::random) {
    Thread& next = random_thread();
    if (&next != &self) resume(next);
    return;
  }
  Cta* cta = self.cta;
  Warp* next = &cta->warp(self.index / 32);
  std::uint32_t const later =
      self.lane == 31 ? 0 : next->ready >> (self.lane + 1) << (self.lane + 1);
  int lane = 0;
  if (later != 0) {
    lane = std::countr_zero(later);
  } else {
    int const after = next->index + 1;
    next = after < 32 ? &ready_warp_from(*cta, after, cta)
                      : &ready_warp_from(this->cta((cta->rank() + 1) % count_), 0, cta);
    lane = std::countr_zero(next->ready);
  }
  Thread& chosen = cta->thread(*next, lane);
  if (&chosen != &self) resume(chosen);
}

/// Every thread waits: what is in flight lands now, at the last moment, where that lets one go on.
void Cluster::nobody_runs() {
  if (stepped_ && observers_.choose(*this)) return;
  if (!in_flight_.empty() && in_flight_.land_for_waiters()) return;
  idle_reads_ += kIdleReads / kMostGivenUpWaits;
  if (idle_reads_ <= kIdleReads) {
    for (int rank = 0; rank < count_; ++rank) {
      if (cta(rank).one_gives_up()) return;
    }
  }
  deadlock("");
}

void Cluster::watch_read(void const* address, bool shared, SourceLocation where) {
  Thread& self = *current_;
  if (self.last_read != address) {
    self.last_read = address;
    self.tests = 0;
    self.read_where = where;
    self.reads = 0;
    progressed();
    return;
  }
  ++idle_reads_;
  if (++self.reads % kReadsBeforeYield != 0) return;
  if (alone()) idle_reads_ += (kSoonerAlone - 1) * kReadsBeforeYield;
  if (stepped_)
    observers_.before({.kind = Visible::Kind::reread,
                       .cta = -1,
                       .address = reinterpret_cast<std::uintptr_t>(address),
                       .amount = 1});
  if (!shared && !others_run_by_steps())
    launch_->baton != nullptr ? let_clusters_run() : take_turn(address);
  stuck_reading();
  yield();
}

void Cluster::polled(std::uint32_t mbarrier, SourceLocation where) {
  Thread& self = *current_;
  self.last_read = nullptr;
  self.tests = mbarrier;
  self.read_where = where;
  ++idle_reads_;
  stuck_reading();
  yield();
}

/// Where every thread that can run has read the same again and again, something in flight lands;
/// where nothing is, the cluster is stuck.
void Cluster::stuck_reading() {
  if (!in_flight_.empty() && idle_reads_ > 2 * kReadsBeforeYield * std::int64_t{live_threads_} &&
      in_flight_.land_oldest())
    idle_reads_ = 0;
  if (idle_reads_ <= kIdleReads) return;
  stuck_at_ =
      find(*launch_->global, current_->last_read) != nullptr ? current_->last_read : nullptr;
  deadlock("every thread that runs reads the same memory again and again, and nobody changes it; ");
}

void Cluster::take_turn(void const* address) {
  if (others_run_by_steps()) return;
  if (launch_->baton != nullptr) {
    if (current_->last_read == address) return;  // who polls lets others run by and by
    bool const others = interleaving_ == Interleaving::round_robin ||
                        (interleaving_ == Interleaving::random && random() % 2 == 0);
    if (++strong_accesses_ % kAccessesOfATurn == 0 || others) let_clusters_run();
    return;
  }
  if (has_turn_) return;
  launch_->turns->wait_for_turn(index_);
  has_turn_ = true;
}

/// Who decides step by step who runs decides of other clusters, too.
bool Cluster::others_run_by_steps() const { return stepped_ && observers_.decides(); }

/// Nobody else of the cluster can run.
bool Cluster::alone() const {
  Cta& cta = *current_->cta;
  Warp const& warp = cta.current_warp();
  return ready_ctas_ == 1u << cta.rank() && cta.ready_warps_ == 1u << warp.index &&
         warp.ready == 1u << current_->lane;
}

/// Of clusters that are there together: another one runs, and this one goes on in its turn.
void Cluster::let_clusters_run() {
  std::int64_t const further = interleaving_ == Interleaving::random ? random() : 0;
  if (launch_->baton->pass(place_, further, moved_)) {
    idle_reads_ = 0;
  } else if (!moved_ && alone()) {
    idle_reads_ += kIdleReads / kMostIdleTurns;
  }
  moved_ = false;
}

void Cluster::pass_turn_between_warps() {
  if (timed_) return wait_for_clock();
  if (interleaving_ == Interleaving::one_warp_ahead) return;
  if (behind_ != nullptr) {
    Thread* const ahead = &current_->cta->current_warp() == behind_ ? thread_ahead() : nullptr;
    if (ahead != nullptr) resume(*ahead);
    return;
  }
  Cta* cta = current_->cta;
  Warp& own = cta->warp(current_->index / 32);
  std::uint32_t const bit = 1u << own.index;
  std::uint32_t const others = cta->ready_warps_ & ~bit;
  if (others == 0 && (ready_ctas_ & ~(1u << cta->rank())) == 0) return;
  bool const at_random = interleaving_ == Interleaving::random;
  if (at_random && random() % 2 != 0) return;
  // The current warp is not among the candidates.
  Cta& mine = *current_->cta;
  mine.ready_warps_ &= ~bit;
  if (others == 0) set_idle(mine.rank());
  Thread* next = nullptr;
  if (at_random) {
    next = &random_thread();
  } else {
    Warp& warp = ready_warp_from(*cta, own.index, cta);
    next = &cta->thread(warp, std::countr_zero(warp.ready));
  }
  mine.ready_warps_ |= bit;
  set_ready(mine.rank());
  resume(*next);
}

std::uint32_t Cluster::random() {  // xorshift64* (Vigna, 2016)
  random_state_ ^= random_state_ >> 12;
  random_state_ ^= random_state_ << 25;
  random_state_ ^= random_state_ >> 27;
  return static_cast<std::uint32_t>((random_state_ * 0x2545f4914f6cdd1dull) >> 32);
}

std::size_t Cluster::stack_bytes_used() const {
  std::size_t most = 0;
  for (auto const& cta : ctas_) {
    for (auto const& thread : cta->threads_) most = std::max(most, thread->stack->touched());
  }
  return most;
}

void Cluster::deadlock(std::string const& reason) {
  SourceLocation where;
  Culprit who{current_->cta->rank(), -1, -1};
  for (int rank = count_ - 1; rank >= 0; --rank) {
    SourceLocation const here = cta(rank).waiting_place();
    if (here.line == 0) continue;
    where = here;
    who.cta = rank;
  }
  if (where.line == 0) where = current_->read_where;  // nobody waits: all poll
  report(FindingKind::deadlock, where, who, "", "", reason + who_waits(), {});
  abort();
}

void Cluster::livelock(SourceLocation where) {
  Thread& self = *current_;
  std::string const others = who_waits();
  report(FindingKind::deadlock, where, {self.cta->rank(), self.index / 32, self.lane}, "", "",
         fmt::format("a loop that does not end: this thread has executed {} instructions "
                     "(Options::most_steps){}{}",
                     most_steps_, others.empty() ? "" : "; ", others),
         {});
  abort();
}

/// Of the threads that wait for others, or have exited: a clause for each place.
std::string Cluster::who_waits() const {
  std::vector<std::string> clauses;
  for (int rank = 0; rank < count_; ++rank) {
    std::vector<std::string> of_cta = cta(rank).who_waits();
    if (of_cta.empty()) continue;
    if (count_ > 1) of_cta.front().insert(0, fmt::format("in CTA {} of the cluster, ", rank));
    std::move(of_cta.begin(), of_cta.end(), std::back_inserter(clauses));
  }
  return fmt::format("{}", fmt::join(clauses, "; "));
}

}  // namespace tegula::sim
