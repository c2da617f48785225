#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "tegula/arch/source_location.hpp"
#include "tegula/atom/mma_spec.hpp"

namespace tegula::sim {

/// What registers hold that an operation in flight is to write: a NaN as a float and as each of two
/// halves. As a float it is a signaling one, which arithmetic makes a quiet one: who changes a
/// register shows.
inline constexpr std::uint32_t kRegisterPoison = 0x7fa57fa5u;

/// The accumulators of wgmma operations in flight, which share them as long as one follows another
/// before it has been waited for. While one of them has not landed, the threads' registers hold
/// kPoison, and the values are here.
struct WgmmaAccumulators {
  static constexpr std::uint32_t kPoison = kRegisterPoison;

  MmaSpec op;                                 ///< of the first operation: shape and kind
  std::array<std::uint32_t*, 128> registers;  ///< each thread's, d_registers(op) of them
  std::vector<std::uint32_t> tile;            ///< (64, n), row-major, a word an element
  int in_flight = 0;                          ///< operations that have not landed
  bool poisoned = false;
  SourceLocation where;  ///< of the last operation
};

/// Of each thread of a warpgroup, the first of its registers that a wgmma uses.
using WgmmaThreadsRegisters = std::array<std::uint32_t const*, 128>;

/// What a wgmma read as A from the warpgroup's registers, four of each thread.
struct WgmmaRegistersOfA {
  WgmmaThreadsRegisters registers;
  std::array<std::array<std::uint32_t, 4>, 128> values;
  SourceLocation where;  ///< of the wgmma
};

/// Registers that a wgmma has used, as the last wgmma.fence found them; none has used them since.
struct WgmmaRegistersAtFence {
  WgmmaThreadsRegisters registers;
  int count;                          ///< of each thread
  std::vector<std::uint32_t> values;  ///< thread by thread
};

/// What a warpgroup's wgmma leave behind, for the checks of those that follow.
struct WgmmaHistory {
  /// Of D, and of A, so many are kept.
  static constexpr std::size_t kMostAtFence = 16;

  bool fenced = false;             ///< there was a wgmma.fence
  SourceLocation fence;            ///< the last
  bool fenced_since_wait = false;  ///< and one since the last wgmma.wait_group
  std::vector<std::shared_ptr<WgmmaAccumulators>> waited_for;  ///< since the last wgmma.fence
  std::vector<WgmmaRegistersOfA> read;  ///< likewise; each register once, as it was read last
  std::vector<WgmmaRegistersAtFence> d_at_fence, a_at_fence;
};

}  // namespace tegula::sim
