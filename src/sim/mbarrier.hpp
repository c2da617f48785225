#pragma once

#include <cstdint>
#include <vector>

#include "tegula/arch/where.hpp"
#include "timeline.hpp"

namespace tegula::sim {

class InFlight;
struct Thread;

/// The greatest count of arrivals, and the greatest magnitude of the count of bytes: PTX ISA, "Contents of
/// the mbarrier object".
inline constexpr std::int64_t kMbarrierLimit = (1 << 20) - 1;

/// An mbarrier, modelled beside shared memory: its 64 bits there are opaque.
struct MbarrierState {
  std::uint32_t address = 0;
  Where init;              ///< who initialised it
  int count = 0;           ///< arrivals expected in each phase
  int pending = 0;         ///< of them, those that the current phase still lacks
  std::int64_t tx = 0;     ///< bytes that the current phase still expects; negative where they came first
  std::int64_t phase = 0;  ///< phases that are complete: the parity of the current one is phase % 2
  std::vector<Thread*> waiters;   ///< for the current phase
  TimeGate gate;                  ///< where time is recorded: when the phases were complete
  std::vector<InFlight*> landed;  ///< operations that landed in the current phase
};

}  // namespace tegula::sim
