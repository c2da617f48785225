#pragma once

#include <cstdint>
#include <vector>

#include "report/who.hpp"
#include "tegula/arch/source_location.hpp"
#include "values/instruction.hpp"

namespace tegula::sim {

class InFlight;
struct Thread;

/// The greatest count of arrivals, and the greatest magnitude of the count of bytes: PTX ISA,
/// "Contents of the mbarrier object".
inline constexpr std::int64_t kMbarrierLimit = (1 << 20) - 1;

/// An operation in flight that has landed, and the mbarrier's phase in which it did.
struct Landed {
  InFlight* operation;
  std::int64_t phase;
};

/// An mbarrier, modelled beside shared memory: its 64 bits there are opaque.
struct MbarrierState {
  std::uint32_t address = 0;
  int number = 0;       ///< how many the CTA has initialised before it
  int initialiser = 0;  ///< the thread of the cluster that initialised it, and where
  SourceLocation init;
  int count = 0;    ///< arrivals expected in each phase
  int pending = 0;  ///< of them, those that the current phase still lacks
  /// bytes that the current phase still expects; negative where they came first
  std::int64_t tx = 0;
  SourceLocation
      adds;  ///< of its latest cp.async.mbarrier.arrive that adds to `pending`; line 0: none
  std::int64_t phase = 0;  ///< phases that are complete: the parity of the current one is phase % 2
  std::vector<Thread*> waiters;  ///< for the current phase
  std::vector<Landed> landed;    ///< operations that nobody has waited for
  bool brings = false;           ///< a phase has expected bytes
  std::vector<bool> waited;      ///< by agent: threads that have waited for a phase
  /// The latest arrival, without bytes, of a thread that had waited for it.
  struct {
    Culprit who;
    SourceLocation where;  ///< line 0: there was none
  } own_arrival;
};

}  // namespace tegula::sim
