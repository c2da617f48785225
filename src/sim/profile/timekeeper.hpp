#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "machine/observers.hpp"
#include "profile/timeline.hpp"

namespace tegula::sim {

/// Keeps the time of the first clusters of a launch: gives the machine's events to their Timeline.
class Timekeeper {
 public:
  /// A cluster starts; its time is kept where Cluster::timed() says so.
  void start(Cluster const& cluster);
  void finish();
  bool on() const { return timeline_ != nullptr; }

  /// Whether the last cluster's time was kept, and its trace.
  bool traced() const { return traced_; }
  Trace const& trace() const { return trace_; }

  double clock(Thread const& thread) const;
  void executed(Cta const& cta, Instruction instruction, SourceLocation where);
  void met(Cta const& cta, Warp const& warp, std::uint32_t lanes);
  void warp_executed(Cta const& cta, Warp const& warp, std::uint32_t lanes, Instruction instruction,
                     SourceLocation where);
  void warpgroup_met(Cta const& cta, int first_warp);
  void warpgroup_executed(Cta const& cta, int first_warp, Instruction instruction,
                          SourceLocation where);
  void mma_executed(Cta const& cta, Warp const& warp, int multiply_adds, SourceLocation where);
  void special_function(Cta const& cta, bool exponential);

  void barrier_arrived(Cta const& cta, int id);
  void barrier_completed(Cta const& cta, int id);
  void barrier_passed(Cta const& cta, int id, Warp const& warp);
  void cluster_barrier_arrived(Cta const& cta);
  void cluster_barrier_completed();
  void cluster_barrier_passed(Cta const& cta, Warp const& warp, SourceLocation where);

  void mbarrier_initialised(Cta const& cta, MbarrierState const& mbarrier);
  void mbarrier_arrived(Cta const& cta, MbarrierState const& mbarrier);
  void bytes_completed(Cta const& cta, MbarrierState const& mbarrier, InFlight const* operation);
  void phase_completed(Cta const& cta, MbarrierState const& mbarrier);
  void phase_passed(Cta const& cta, MbarrierState const& mbarrier, Thread const& thread,
                    SourceLocation where);

  void copy_issued(Cta const& cta, AsyncCopy& copy);
  void issued(Cluster const& cluster, InFlight& operation);
  void waited(Cta const& cta, int first_thread, int threads, double until, char const* what,
              SourceLocation where);

 private:
  TimeGate& gate(Cta const& cta, MbarrierState const& mbarrier);
  void pass_warp(TimeGate const& gate, std::int64_t phase, Cta const& cta, Warp const& warp,
                 SourceLocation where);

  /// While it is there, the special-function units' instructions are charged for.
  struct Charges {
    Charges();
    ~Charges();
  };

  std::unique_ptr<Timeline> timeline_;
  std::unique_ptr<Charges> charges_;                         ///< where there is a timeline
  std::map<std::pair<int, std::uint32_t>, TimeGate> gates_;  ///< of mbarriers, by CTA and address
  Trace trace_;
  bool traced_ = false;
};

}  // namespace tegula::sim
