#include "cta.hpp"

#include <algorithm>
#include <bit>
#include <exception>

#include "turn_keeper.hpp"

namespace tegula::sim {

namespace {

/// Reads of one address in a row by one thread, after which it counts as waiting for that memory to change,
/// and lets others run.
constexpr int kReadsBeforeYield = 16;
/// Such reads, by any threads, with nobody doing anything else in between, after which the CTA counts as
/// stuck.
constexpr std::int64_t kIdleReads = 1 << 20;

std::uint64_t mix(std::uint64_t x) {  // the finaliser of splitmix64 (Steele, Lea and Flood, 2014)
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

}  // namespace

void AsyncCopies::clear() {
  copies.clear();
  group_ends.clear();
  first_copy = 0;
  first_group = 0;
}

void AsyncCopies::forget_retired() {
  copies.erase(copies.begin(), copies.begin() + static_cast<std::ptrdiff_t>(first_copy));
  group_ends.erase(group_ends.begin(), group_ends.begin() + static_cast<std::ptrdiff_t>(first_group));
  for (std::size_t& end : group_ends) end -= first_copy;
  first_copy = 0;
  first_group = 0;
}

Cta::~Cta() {
  closing_ = true;
  for (auto const& thread : threads_) switcher_.switch_to(host_, thread->context);
}

CtaResult Cta::run(LaunchContext const& launch, std::int64_t index) {
  start(launch, index);
  current_ = threads_[0].get();
  switcher_.switch_to(host_, current_->context);
  current_ = nullptr;
  if (count_) {
    for (int w = 0; w < threads() / 32; ++w) flush_log(warp(w));
  }
  return {std::move(findings_)};
}

void Cta::start(LaunchContext const& launch, std::int64_t index) {
  launch_ = &launch;
  Options const& options = *launch.options;
  index_ = index;
  block_ = {static_cast<int>(index % launch.grid.x), static_cast<int>(index / launch.grid.x % launch.grid.y),
            static_cast<int>(index / launch.grid.x / launch.grid.y)};
  check_ = options.check;
  count_ = options.count;
  completion_ = options.completion;
  interleaving_ = options.interleaving;
  generation_ = options.generation;
  random_state_ = mix(options.seed * 0x9e3779b97f4a7c15ull + static_cast<std::uint64_t>(index)) | 1;
  aborting_ = false;
  has_turn_ = false;
  recent_ = {};
  idle_reads_ = 0;
  barriers_ = {};
  findings_.clear();
  shared_.reset(launch.kernel->shared_bytes);

  int const count = launch.kernel->threads;
  while (static_cast<int>(threads_.size()) < count) {
    int const i = static_cast<int>(threads_.size());
    auto thread = std::make_unique<Thread>();
    thread->index = i;
    thread->lane = i % 32;
    thread->stack = std::make_unique<FiberStack>(stack_bytes_, 7 * i);
    Thread* const self = thread.get();
    switcher_.create(self->context, *self->stack, [this, self] { thread_body(*self); });
    threads_.push_back(std::move(thread));
  }
  for (int i = 0; i < count; ++i) {
    Thread& thread = *threads_[static_cast<std::size_t>(i)];
    thread.started = false;
    thread.finished = false;
    thread.last_read = nullptr;
    thread.async.clear();
  }
  warps_.resize(static_cast<std::size_t>(count / 32));
  ready_warps_ = 0;
  for (int w = 0; w < count / 32; ++w) {
    Warp& warp = this->warp(w);
    warp.index = w;
    warp.ready = 0;
    warp.exited = 0;
    warp.completes = 0;
    warp.barrier = -1;
    warp.meetings = 0;
    warp.log.clear();
    set_ready(warp, kFullWarp);
  }
  live_threads_ = count;
}

void Cta::thread_body(Thread& thread) {
  while (!closing_) {
    thread.started = true;
    try {
      launch_->kernel->run(shared_.data());
    } catch (LeaveKernel const&) {
    } catch (std::exception const& e) {
      report(FindingKind::exception, Where{}, here(thread.lane), "", "",
             std::string("the kernel threw: ") + e.what());
      aborting_ = true;
    } catch (...) {
      report(FindingKind::exception, Where{}, here(thread.lane), "", "",
             "the kernel threw something that is no std::exception");
      aborting_ = true;
    }
    finish_thread();
    Thread* const next = next_thread();
    current_ = next;
    switcher_.switch_to(thread.context, next != nullptr ? next->context : host_);
  }
}

void Cta::finish_thread() {
  Thread& thread = *current_;
  thread.finished = true;
  idle_reads_ = 0;
  Warp& own = warp();
  own.ready &= ~(1u << thread.lane);
  own.exited |= 1u << thread.lane;
  if (own.ready == 0) ready_warps_ &= ~(1u << own.index);
  --live_threads_;
  if (aborting_) return;
  retire(thread.async, thread.async.copies.size());
  try {
    check_exit(own);
    if (ready_warps_ == 0 && live_threads_ != 0) deadlock("");
  } catch (LeaveKernel const&) {
  }
}

/// Who runs now that the current thread cannot: a lane of the same warp, else the next warp's. Null when
/// nobody is left.
Thread* Cta::next_thread() {
  if (aborting_) {
    for (auto const& thread : threads_) {
      if (thread->started && !thread->finished) return thread.get();
    }
    return nullptr;
  }
  if (ready_warps_ == 0) return nullptr;
  Warp* next = &warp();
  if (next->ready == 0) {
    std::uint32_t const first =
        interleaving_ == Interleaving::random ? random() % 32 : static_cast<std::uint32_t>(next->index);
    int const turn = std::countr_zero(std::rotr(ready_warps_, static_cast<int>(first)));
    next = &warps_[(static_cast<std::uint32_t>(turn) + first) % 32];
  }
  int lane = std::countr_zero(next->ready);
  if (interleaving_ == Interleaving::random) {
    std::uint32_t const first = random() % 32;
    lane = static_cast<int>(
        (static_cast<std::uint32_t>(std::countr_zero(std::rotr(next->ready, static_cast<int>(first)))) +
         first) %
        32);
  }
  return thread(*next, lane);
}

void Cta::set_ready(Warp& warp, std::uint32_t lanes) {
  warp.ready |= lanes;
  ready_warps_ |= 1u << warp.index;
}

/// Suspends the current thread, which waits, until somebody sets it ready and its turn comes.
void Cta::block() {
  Thread& self = *current_;
  self.last_read = nullptr;
  Warp& own = warp();
  own.ready &= ~(1u << self.lane);
  if (own.ready == 0) {
    ready_warps_ &= ~(1u << own.index);
    if (ready_warps_ == 0) deadlock("");
  }
  current_ = next_thread();
  switcher_.switch_to(self.context, current_->context);
  if (aborting_) throw LeaveKernel{};
}

/// Lets the next ready thread run: the next lane of this warp, or after the last one the next warp.
void Cta::yield() {
  Thread& self = *current_;
  Warp* next = &warp();
  std::uint32_t const later = self.lane == 31 ? 0 : next->ready >> (self.lane + 1) << (self.lane + 1);
  int lane = 0;
  if (later != 0) {
    lane = std::countr_zero(later);
  } else {
    int const first = (next->index + 1) % 32;
    next = &warp((std::countr_zero(std::rotr(ready_warps_, first)) + first) % 32);
    lane = std::countr_zero(next->ready);
  }
  Thread* const chosen = thread(*next, lane);
  if (chosen == &self) return;
  current_ = chosen;
  switcher_.switch_to(self.context, current_->context);
  if (aborting_) throw LeaveKernel{};
}

/// The thread read memory. One that reads the same place again and again waits for it to change: others must
/// run, in this CTA and, where it is global memory, in those before it.
void Cta::watch_read(void const* address, bool shared, Where where) {
  Thread& self = *current_;
  if (self.last_read != address) {
    self.last_read = address;
    self.read_where = where;
    self.reads = 0;
    idle_reads_ = 0;
    return;
  }
  ++idle_reads_;
  if (++self.reads % kReadsBeforeYield != 0) return;
  if (!shared) take_turn();
  if (idle_reads_ > kIdleReads) {
    deadlock("every thread that runs reads the same memory again and again, and nobody changes it; ");
  }
  yield();
}

/// Waits until every CTA before this one is done.
void Cta::take_turn() {
  if (has_turn_) return;
  launch_->turns->wait_for_turn(index_);
  has_turn_ = true;
}

/// After a warp-wide instruction, lets another warp run where the interleaving asks for it.
void Cta::pass_turn_between_warps() {
  if (interleaving_ == Interleaving::one_warp_ahead) return;
  Warp& own = warp();
  std::uint32_t const others = ready_warps_ & ~(1u << own.index);
  if (others == 0) return;
  std::uint32_t first = static_cast<std::uint32_t>(own.index);
  if (interleaving_ == Interleaving::random) {
    std::uint32_t const draw = random();
    if ((draw & 1) != 0) return;
    first = (draw >> 1) % 32;
  }
  std::uint32_t const turn =
      static_cast<std::uint32_t>(std::countr_zero(std::rotr(others, static_cast<int>(first))));
  Warp& next = warps_[(turn + first) % 32];
  Thread& self = *current_;
  current_ = thread(next, std::countr_zero(next.ready));
  switcher_.switch_to(self.context, current_->context);
  if (aborting_) throw LeaveKernel{};
}

std::uint32_t Cta::random() {  // xorshift64* (Vigna, 2016)
  random_state_ ^= random_state_ >> 12;
  random_state_ ^= random_state_ << 25;
  random_state_ ^= random_state_ >> 27;
  return static_cast<std::uint32_t>((random_state_ * 0x2545f4914f6cdd1dull) >> 32);
}

std::size_t Cta::stack_bytes_used() const {
  std::size_t most = 0;
  for (auto const& thread : threads_) most = std::max(most, thread->stack->touched());
  return most;
}

}  // namespace tegula::sim
