#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "machine/cta.hpp"
#include "machine/current_cta.hpp"
#include "machine/fiber.hpp"
#include "machine/in_flight.hpp"
#include "machine/launch_context.hpp"
#include "machine/observers.hpp"
#include "machine/visible.hpp"

namespace tegula::sim {

/// CTAs of a cluster, at most: CUDA C++ programming guide, "Thread Block Clusters" (the
/// portable size).
inline constexpr int kMostCtasOfACluster = 8;

/// The barrier of a cluster: PTX ISA, barrier.cluster. A warp that has exited is not waited for.
struct ClusterBarrier {
  std::int64_t phase = 0;  ///< how often it has been completed
  int live = 0;            ///< warps of the cluster that have not exited
  int pending = 0;         ///< of them, those that have not arrived since
};

/// Runs clusters, one after another, on one host thread, and decides which of their threads runs:
/// the CTAs of a cluster run together. A CTA of a launch without clusters is a cluster of its own.
class Cluster {
 public:
  Cluster(Observers& observers, std::size_t stack_bytes)
      : observers_(observers), stack_bytes_(stack_bytes) {}
  ~Cluster();
  Cluster(Cluster const&) = delete;
  Cluster& operator=(Cluster const&) = delete;

  /// Runs the cluster with the given index, x fastest, and returns what was found. `place`: its
  /// number among those that are there together.
  std::vector<Finding> run(LaunchContext const& launch, std::int64_t index, std::int64_t place);
  /// The deepest stack of any thread so far, in bytes.
  std::size_t stack_bytes_used() const;
  std::size_t stack_bytes() const { return stack_bytes_; }
  /// Writes a sentence about the current thread's stack overflow, if the address is in its guard
  /// page; returns its length, or 0.
  std::size_t describe_overflow(void const* address, char* text, std::size_t capacity) const;

  int ctas() const { return count_; }
  Cta& cta(int rank) { return *ctas_[static_cast<std::size_t>(rank)]; }
  Cta const& cta(int rank) const { return *ctas_[static_cast<std::size_t>(rank)]; }
  Dim3 extents() const { return launch_->kernel->cluster; }
  /// Coordinate of a CTA in the cluster.
  Dim3 coordinate(int rank) const;
  Thread& current() const { return *current_; }
  LaunchContext const& launch() const { return *launch_; }
  std::int64_t index() const { return index_; }  ///< in the launch
  std::int64_t place() const { return place_; }  ///< among those that are there together
  Observers& observers() const { return observers_; }
  /// Somebody keeps time: the thread with the earliest clock runs.
  bool timed() const { return timed_; }
  /// Somebody decides step by step who runs.
  bool stepped() const { return stepped_; }
  /// Either.
  bool paced() const { return timed_ || stepped_; }
  /// Accesses to memory are checked.
  bool checked() const { return checked_; }
  /// Any of these.
  bool observed() const { return timed_ || stepped_ || checked_; }
  InFlightQueue& in_flight() { return in_flight_; }
  Completion completion() const { return completion_; }
  bool aborting() const { return aborting_; }
  std::uint32_t random();

  /// Where time is recorded: lets the threads whose clocks are behind the current one's run first.
  void wait_for_clock();

  /// Suspends the current thread, which waits, until somebody sets it ready and its turn comes.
  void block();
  /// Lets the next ready thread run: the next lane of this warp, or after the last one the
  /// next warp.
  void yield();
  /// A CTA has a warp that can run, where it had none; or none, where it had one.
  void set_ready(int cta) { ready_ctas_ |= 1u << cta; }
  bool anyone_ready() const { return ready_ctas_ != 0; }
  void set_idle(int cta) { ready_ctas_ &= ~(1u << cta); }
  /// After a warp-wide instruction, lets another warp run where the interleaving asks for it.
  void pass_turn_between_warps();
  /// The current thread is about to do what others may notice: another may go first, and operations
  /// in flight may land.
  void before(Visible const& what) {
    if (often_) [[unlikely]]
      let_others_run(what);
  }
  /// The thread read memory. One that reads the same place again and again waits for it to change:
  /// others must run, in this cluster and, where it is global memory, in those before it.
  void watch_read(void const* address, bool shared, SourceLocation where);
  /// The thread tested the mbarrier, whose phase is not complete: likewise.
  void polled(std::uint32_t mbarrier, SourceLocation where);
  /// The thread is to execute an instruction, one of those of which it may execute so many
  /// (Options::most_steps).
  void step(SourceLocation where) {
    if (++current_->steps > most_steps_) [[unlikely]]
      livelock(where);
  }
  /// The thread did something that others may have waited for.
  void progressed() {
    idle_reads_ = 0;
    moved_ = true;
  }
  /// The current thread is about to do to global memory what other clusters notice: waits until
  /// every cluster before this one is done, or, where all are there together, lets others run.
  void take_turn(void const* address);
  /// The global memory that every thread read again and again, in vain, when the cluster was ended;
  /// or null.
  void const* stuck_at() const { return stuck_at_; }

  /// A warp arrives at the cluster's barrier.
  void arrive_at_barrier(Warp& warp, bool relaxed);
  /// The warp comes after the phase that it has waited for.
  void pass_barrier(Cta& cta, Warp& warp, SourceLocation where);
  /// Whether the phase at which the warp has arrived last is complete.
  bool barrier_complete(Warp const& warp) const { return barrier_.phase >= warp.cluster_arrivals; }
  /// A warp has exited: nobody waits for it any longer.
  void leave_barrier(Warp& warp);
  std::string barrier_text() const;

  void report(FindingKind kind, SourceLocation where, Culprit who, std::string buffer,
              std::string coordinate, std::string message, Opposite other);
  /// Counts such a finding once more, if there is one.
  bool again(FindingKind kind, SourceLocation where, std::string const& buffer) {
    return earlier(kind, where, buffer) != nullptr;
  }
  /// Ends the cluster: every thread leaves the kernel.
  [[noreturn]] void abort();

 private:
  Finding* earlier(FindingKind kind, SourceLocation where, std::string const& buffer);
  void start(LaunchContext const& launch, std::int64_t index);
  void add_threads(Cta& cta, int count);
  void thread_body(Thread& thread);
  void finish_thread(Thread& thread);
  /// Suspends the current thread and continues another one.
  void resume(Thread& next);
  void block_other(Cta& cta, Warp& own);
  Thread* next_thread();
  Thread& earliest_thread();
  void let_others_run(Visible const& what);
  Thread& random_thread();
  int random_bit(std::uint32_t bits);
  Thread* thread_ahead();
  Warp& ready_warp_from(Cta& cta, int first, Cta*& of);
  void nobody_runs();
  void complete_barrier_if_due();
  void stuck_reading();
  void let_clusters_run();
  bool alone() const;
  bool others_run_by_steps() const;
  [[noreturn]] void livelock(SourceLocation where);
  [[noreturn]] void deadlock(std::string const& reason);
  std::string who_waits() const;

  Observers& observers_;
  LaunchContext const* launch_ = nullptr;
  Thread* current_ = nullptr;
  std::int64_t index_ = 0;
  std::int64_t place_ = 0;  ///< by which the baton knows it
  int count_ = 0;           ///< CTAs
  bool aborting_ = false;
  bool closing_ = false;  ///< the fibers are to end
  bool has_turn_ = false;
  bool moved_ = false;  ///< it has done something since it had the baton last
  std::uint32_t strong_accesses_ = 0;
  void const* stuck_at_ = nullptr;
  Completion completion_ = Completion::last;
  Interleaving interleaving_ = Interleaving::one_warp_ahead;
  bool often_ = false;  ///< others may run before whatever is visible
  bool timed_ = false;
  bool stepped_ = false;
  bool checked_ = false;
  Warp* behind_ = nullptr;     ///< runs only while no other warp can
  Cta* behind_cta_ = nullptr;  ///< whose it is
  bool in_lane_order_ = true;  ///< after a lane that waits, the warp's first that can run does
  std::uint32_t ready_ctas_ = 0;
  int live_threads_ = 0;
  std::int64_t most_steps_ = 0;
  std::int64_t idle_reads_ = 0;  ///< reads in a row that found what the thread's last one did
  std::uint64_t random_state_ = 0;
  ClusterBarrier barrier_;
  InFlightQueue in_flight_{*this};
  std::vector<Finding> findings_;
  std::size_t last_finding_ = 0;  ///< the one reported last

  std::size_t stack_bytes_;
  Context host_;
  Switcher switcher_;
  std::vector<std::unique_ptr<Cta>> ctas_;
};

// These three are where threads wait, and inline: after a switch every return is mispredicted, so
// that each frame between the instruction and the switch is felt.

inline void Cluster::resume(Thread& next) {
  Thread& self = *current_;
  current_ = &next;
  if (next.cta != self.cta) set_running_cta(next.cta);
  switcher_.switch_to(self.context, next.context);
  if (aborting_) throw LeaveKernel{};
}

inline void Cluster::block() {
  Thread& self = *current_;
  self.last_read = nullptr;
  self.tests = 0;
  Cta& cta = *self.cta;
  Warp& own = cta.warp(self.index / 32);
  own.ready &= ~(1u << self.lane);
  if (in_lane_order_ && own.ready != 0) [[likely]] {
    resume(cta.thread(own, std::countr_zero(own.ready)));
  } else {
    block_other(cta, own);
  }
}

inline bool Cta::wait_for_release(Warp& own, std::uint32_t self) {
  cluster_.block();
  bool const completes = (own.completes & self) != 0;
  own.completes &= ~self;
  return completes;
}

inline Thread& Cta::current_thread() const { return cluster_.current(); }
inline InFlightQueue& Cta::in_flight() const { return cluster_.in_flight(); }
inline Observers& Cta::observers() const { return cluster_.observers(); }
inline void Cta::note(Instruction instruction, SourceLocation where, LaneAccess const& access) {
  cluster_.step(where);
  if (count_ || cluster_.timed()) cluster_.observers().executed(*this, instruction, where, access);
}

}  // namespace tegula::sim
