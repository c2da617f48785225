#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "checker/causality.hpp"
#include "machine/in_flight.hpp"
#include "tegula/arch/source_location.hpp"

/// The phases of one mbarrier: when each was complete, who has waited for which, and what they give
/// back. Phases are numbered from 0; a wait that passes before any is complete is for phase -1.
namespace tegula::sim {

class PhaseHistory {
 public:
  explicit PhaseHistory(SharedRange place) : place_(place) {}
  SharedRange const& place() const { return place_; }

  /// A thread's latest wait. Line 0: it has not waited.
  struct Wait {
    std::int64_t phase = -1;
    SourceLocation where;
    std::uint32_t waits = 0;  ///< of the thread, so far
    bool brings = true;       ///< whether copies completed bytes of that phase
  };

  /// A copy completes bytes of the present phase.
  void brought() { brings_ = true; }
  /// The present phase is complete.
  void completed(Time now) {
    ends_.push_back(now);
    brought_ = std::exchange(brings_, false);
  }
  /// The phase in which something at the time counted.
  std::int64_t phase_at(Time time) const;

  /// `thread` is an agent.
  void waited(int thread, std::int64_t phase, SourceLocation where);
  Wait wait_of(int thread) const {
    return static_cast<std::size_t>(thread) < waits_.size()
               ? waits_[static_cast<std::size_t>(thread)]
               : Wait{};
  }

  /// Some thread has waited here before it arrived at the mbarrier `filled`: arrivals here give
  /// back what a phase of that one has brought.
  void guards(PhaseHistory const& filled);
  /// A wait that passed on a phase that its thread had already given back.
  struct Stale {
    PhaseHistory const* filled = nullptr;  ///< what was waited for; null: nothing is wrong
    Wait wait;
    SourceLocation first;      ///< the thread's wait for the phase before it gave it back,
    SourceLocation gave_back;  ///< and the arrival that did
  };
  /// `thread` arrives here, in phase `phase`, having waited for what this guards.
  Stale gives_back(int thread, std::int64_t phase, SourceLocation where);

 private:
  /// What a thread had waited for when it arrived here last.
  struct Given {
    Wait wait;
    std::int64_t phase = -1;  ///< of this mbarrier, at the arrival
    SourceLocation where;     ///< of the arrival; line 0: there was none
  };
  struct Guarded {
    PhaseHistory const* filled;
    std::vector<Given> given;  ///< by agent
  };

  SharedRange place_;        ///< of the mbarrier
  std::vector<Time> ends_;   ///< of the phases that are complete
  bool brings_ = false;      ///< whether copies have completed bytes of the present phase,
  bool brought_ = false;     ///< and of the one before
  std::vector<Wait> waits_;  ///< by agent
  std::vector<Guarded> guarded_;
};

}  // namespace tegula::sim
