#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tegula/sim/machine.hpp"

namespace tegula::sim {

/// Where SharedStorage begins in the CTA's shared window: an H100 keeps the first 1024 bytes to itself.
inline constexpr std::uint32_t kSharedBase = 1024;

/// The state of a byte of shared memory, as bits.
inline constexpr std::uint8_t kWritten = 1;   ///< somebody wrote it
inline constexpr std::uint8_t kInFlight = 2;  ///< a copy into it was issued, and nobody has waited for it
inline constexpr std::uint8_t kBeingRead =
    4;  ///< an operation in flight reads it, and nobody has waited for it
inline constexpr std::uint8_t kMbarrier = 8;  ///< it is part of an mbarrier

/// Any of these makes a read, or a write, a finding.
inline constexpr std::uint8_t kNoRead = kInFlight | kMbarrier;
inline constexpr std::uint8_t kNoWrite = kInFlight | kBeingRead | kMbarrier;

/// A CTA's shared memory and its shadow: one byte of state for each byte. (Who read and wrote it last, and
/// when, is in races.hpp.)
class SharedMemory {
 public:
  /// Makes room for `bytes` bytes, none of which is written.
  void reset(std::size_t bytes);

  unsigned char* data() { return data_.get(); }
  std::size_t bytes() const { return bytes_; }
  bool contains(std::uint32_t address, std::uint32_t n) const {
    std::uint32_t const offset = address - kSharedBase;
    return offset < bytes_ && n <= bytes_ - offset;
  }
  unsigned char* at(std::uint32_t address) { return data_.get() + (address - kSharedBase); }
  std::uint8_t* state(std::uint32_t address) { return state_.get() + (address - kSharedBase); }

  /// The first of n bytes whose state has a bit of `mask` set that is clear in `want`, or the reverse; n
  /// where there is none.
  std::uint32_t first_other(std::uint32_t address, std::uint32_t n, std::uint8_t mask,
                            std::uint8_t want) const;
  /// Sets and clears bits of the state of n bytes.
  void mark(std::uint32_t address, std::uint32_t n, std::uint8_t set, std::uint8_t clear = 0);
  /// One operation in flight more, or less, reads n bytes; kBeingRead is set where any does. Counted
  /// in pieces of 16 bytes, of which whatever operations in flight read consists.
  void add_reader(std::uint32_t address, std::uint32_t n);
  void remove_reader(std::uint32_t address, std::uint32_t n);

 private:
  struct Free {
    void operator()(unsigned char* p) const;
  };
  std::unique_ptr<unsigned char, Free> data_;
  std::unique_ptr<std::uint8_t[]> state_;
  static constexpr std::uint32_t kPiece = 16;
  void mark_piece(std::uint32_t piece, std::uint8_t set, std::uint8_t clear);

  /// Operations in flight that read each piece; empty where none ever did.
  std::vector<std::uint16_t> readers_;
  std::size_t bytes_ = 0;
  std::size_t capacity_ = 0;
};

/// The buffer that holds a shared address, or null, and the address's place in it: "row 17, column 40 of K".
SharedBuffer const* buffer_at(std::vector<SharedBuffer> const& buffers, std::uint32_t address);
std::string place_in(SharedBuffer const& buffer, std::uint32_t address);

}  // namespace tegula::sim
