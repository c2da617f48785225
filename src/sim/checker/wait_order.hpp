#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "checker/causality.hpp"
#include "tegula/arch/source_location.hpp"

/// Whether a thread's wait for a phase of an mbarrier comes before the next phase is complete, in
/// whatever order the threads run.
///
/// A wait names its phase by a parity. A thread that comes to it when the next phase is complete,
/// too, waits for the one after that, perhaps for ever. So something must make the next phase
/// wait for the thread. That need not order memory: lanes that meet at a shuffle or at a wgmma will
/// do as well as a barrier. So this is a relation of its own beside Causality's, and a greater one.
namespace tegula::sim {

class InFlight;
struct Thread;

class WaitOrder {
 public:
  /// Who has waited for the latest phase of an mbarrier that is complete, by warps.
  struct Waited {
    int warp = 0;  ///< of the cluster
    std::uint32_t lanes = 0;
    Time time = 0;                ///< of the first lane
    std::uint32_t met = 0;        ///< how often the warp's lanes had met by then,
    std::uint32_t group_met = 0;  ///< and the warps of its warpgroup
    SourceLocation where;
  };
  /// What is kept of an mbarrier.
  struct OfMbarrier {
    Published arriving;  ///< by what counts for the present phase
    Published complete;  ///< by what counted for those before
    std::vector<Waited> waited;
  };
  /// A wait that nothing has come before the next phase is complete.
  struct Late {
    int thread = 0;  ///< of the cluster
    SourceLocation where;
    /// a lane of the same warp of whose wait the next phase knows; -1: none
    int other_lane = -1;
  };

  /// A cluster of so many CTAs starts; each has so many threads.
  void start(int ctas, int threads);

  /// What the thread has done and come after.
  void release(Thread const& thread, Published& into);
  void acquire(Thread const& thread, Published const& from);
  /// The warps of the thread's warpgroup have met.
  void warpgroup_met(Thread const& thread);

  /// The thread has issued an operation that will tell an mbarrier; it does.
  void issued(Thread const& thread, InFlight const& operation) {
    release(thread, issued_[&operation]);
  }
  void told(OfMbarrier& mbarrier, InFlight const& operation);
  /// The thread has waited for the latest phase that is complete.
  void waited(OfMbarrier& mbarrier, Thread const& thread, SourceLocation where);
  /// One phase more is complete. The first wait for the one before, if there is any, that this
  /// one does not know of.
  std::optional<Late> completed(OfMbarrier& mbarrier);

  /// The thread has performed a strong access: whatever the value, it may come after those that
  /// wrote before.
  void strong_access(Thread const& thread, bool reads, bool writes);

 private:
  // The agents of order_, of which the warps know what they have come after.
  int of_thread(int thread) const { return warps_ + thread; }
  int of_meetings(int warp) const { return warps_ + threads_ + warp; }
  int of_groups_meetings(int warp) const {
    return 2 * warps_ + threads_ + warp / warps_of_cta_ * groups_ + warp % warps_of_cta_ / 4;
  }

  /// A warp knows at once what one of its lanes has come to know.
  Causality order_;
  std::vector<bool> learned_;  ///< warps that have since their warpgroup met last
  std::map<InFlight const*, Published> issued_;
  Published strong_;  ///< by strong writes
  int warps_ = 0, threads_ = 0, groups_ = 0, warps_of_cta_ = 1;
};

}  // namespace tegula::sim
