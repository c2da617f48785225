#pragma once

#include <cstdint>
#include <vector>

#include "checker/causality.hpp"
#include "tegula/arch/where.hpp"
#include "values/instruction.hpp"

namespace tegula::sim {

class InFlight;
struct Thread;

/// The greatest count of arrivals, and the greatest magnitude of the count of bytes: PTX ISA, "Contents of
/// the mbarrier object".
inline constexpr std::int64_t kMbarrierLimit = (1 << 20) - 1;

/// A peer's access to a CTA's shared memory, or arrival at its mbarrier: it must come before the CTA's exit.
struct PeerAccess {
  Instruction instruction;
  Where where;
  std::uint32_t address;  ///< of this CTA's shared memory
  int cta;                ///< rank of who did it
  int warp;
  int lane;
  std::int64_t barrier_phase;   ///< the cluster's barrier orders it once that has been completed so often
  std::int64_t mbarrier_phase;  ///< the phase that it counted for; -1: it is no arrival
};

/// Adds one, in the place of an earlier one by the same warp on the same line.
void note_access(std::vector<PeerAccess>& accesses, PeerAccess const& access);

/// An operation in flight that has landed, and the mbarrier's phase in which it did.
struct Landed {
  InFlight* operation;
  std::int64_t phase;
};

/// An mbarrier, modelled beside shared memory: its 64 bits there are opaque.
struct MbarrierState {
  std::uint32_t address = 0;
  int agent = 0;        ///< of the copies that complete on it
  int initialiser = 0;  ///< the thread that initialised it, and when
  Time init_time = 0;
  Where init;              ///< who initialised it
  int count = 0;           ///< arrivals expected in each phase
  int pending = 0;         ///< of them, those that the current phase still lacks
  std::int64_t tx = 0;     ///< bytes that the current phase still expects; negative where they came first
  std::int64_t phase = 0;  ///< phases that are complete: the parity of the current one is phase % 2
  std::vector<Thread*> waiters;  ///< for the current phase
  Published arriving;            ///< by those that have arrived in the current phase
  Published arriving_wide;       ///< likewise by those of other CTAs that release at the cluster's scope
  Published complete_wide;
  Published complete;                ///< by the arrivals of the phases that are complete
  std::vector<Landed> landed;        ///< operations that nobody has waited for
  std::vector<PeerAccess> accesses;  ///< that no wait has ordered before the CTA's exit
};

}  // namespace tegula::sim
