#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "tegula/arch/source_location.hpp"
#include "tegula/atom/mma_spec.hpp"

namespace tegula::sim {

/// The accumulators of wgmma operations in flight, which share them as long as one follows another
/// before it has been waited for. While one of them has not landed, the threads' registers hold
/// kPoison, and the values are here.
struct WgmmaAccumulators {
  /// A NaN as a float and as each of two halves.
  static constexpr std::uint32_t kPoison = 0x7ff57ff5u;

  MmaSpec op;                                 ///< of the first operation: shape and kind
  std::array<std::uint32_t*, 128> registers;  ///< each thread's, d_registers(op) of them
  std::vector<std::uint32_t> tile;            ///< (64, n), row-major, a word an element
  int in_flight = 0;                          ///< operations that have not landed
  bool poisoned = false;
  SourceLocation where;  ///< of the last operation
};

/// What a wgmma read as A from the warpgroup's registers, four of each thread.
struct WgmmaRegistersOfA {
  std::array<std::uint32_t const*, 128> registers;
  std::array<std::array<std::uint32_t, 4>, 128> values;
  SourceLocation where;  ///< of the wgmma
};

/// What a warpgroup's wgmma leave behind, for the checks of those that follow.
struct WgmmaHistory {
  bool fenced = false;             ///< there was a wgmma.fence
  bool fenced_since_wait = false;  ///< and one since the last wgmma.wait_group
  std::vector<std::shared_ptr<WgmmaAccumulators>> waited_for;  ///< since the last wgmma.fence
  std::vector<WgmmaRegistersOfA> read;  ///< likewise; each register once, as it was read last
};

}  // namespace tegula::sim
