#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "machine/shared_memory.hpp"

namespace tegula::sim {

/// The state of a byte of shared memory, as bits.
inline constexpr std::uint8_t kWritten = 1;  ///< somebody wrote it
/// a copy into it was issued, and nobody has waited for it
inline constexpr std::uint8_t kInFlight = 2;
inline constexpr std::uint8_t kBeingRead =
    4;  ///< an operation in flight reads it, and nobody has waited for it
inline constexpr std::uint8_t kMbarrier = 8;  ///< it is part of an mbarrier

/// Any of these makes a read, or a write, a finding.
inline constexpr std::uint8_t kNoRead = kInFlight | kMbarrier;
inline constexpr std::uint8_t kNoWrite = kInFlight | kBeingRead | kMbarrier;

/// The state of each byte of a CTA's shared memory. (Who read and wrote it last, and when, is
/// in races.hpp.)
class SharedState {
 public:
  /// None of `bytes` bytes is written.
  void reset(std::size_t bytes);
  std::uint8_t* at(std::uint32_t address) { return state_.get() + (address - kSharedBase); }
  /// The first of n bytes whose state has a bit of `mask` set that is clear in `want`, or the
  /// reverse; n where there is none.
  std::uint32_t first_other(std::uint32_t address, std::uint32_t n, std::uint8_t mask,
                            std::uint8_t want) const;
  /// Sets and clears bits of the state of n bytes.
  void mark(std::uint32_t address, std::uint32_t n, std::uint8_t set, std::uint8_t clear = 0);
  /// One operation in flight more, or less, reads n bytes; kBeingRead is set where any does.
  /// Counted in pieces of 16 bytes, of which whatever operations in flight read consists.
  void add_reader(std::uint32_t address, std::uint32_t n);
  void remove_reader(std::uint32_t address, std::uint32_t n);

 private:
  static constexpr std::uint32_t kPiece = 16;
  void mark_piece(std::uint32_t piece, std::uint8_t set, std::uint8_t clear);

  std::unique_ptr<std::uint8_t[]> state_;
  std::vector<std::uint16_t>
      readers_;  ///< operations in flight that read each piece; empty where none ever did
  std::size_t bytes_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace tegula::sim
