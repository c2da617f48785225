#include "checker/shared_state.hpp"

#include <cstring>

namespace tegula::sim {

namespace {

/// Sets and clears bits of the state of eight bytes.
void mark_eight(std::uint8_t* state, std::uint8_t set, std::uint8_t clear) {
  constexpr std::uint64_t kEach = 0x0101010101010101;
  std::uint64_t word = 0;
  std::memcpy(&word, state, 8);
  word = (word & ~(clear * kEach)) | (set * kEach);
  std::memcpy(state, &word, 8);
}

}  // namespace

void SharedState::reset(std::size_t bytes) {
  if (bytes > capacity_) {
    capacity_ = (bytes / 1024 + 1) * 1024;
    state_ = std::make_unique<std::uint8_t[]>(capacity_);
  }
  bytes_ = bytes;
  readers_.clear();
  if (bytes != 0) std::memset(state_.get(), 0, bytes);
}

std::uint32_t SharedState::first_other(std::uint32_t address, std::uint32_t n, std::uint8_t mask,
                                       std::uint8_t want) const {
  std::uint8_t const* const state = state_.get() + (address - kSharedBase);
  std::uint64_t const masks = mask * 0x0101010101010101ull;
  std::uint64_t const wants = want * 0x0101010101010101ull;
  std::uint32_t i = 0;
  for (; i + 8 <= n; i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, state + i, 8);
    if ((word & masks) != wants) break;
  }
  for (; i < n; ++i) {
    if ((state[i] & mask) != want) return i;
  }
  return n;
}

void SharedState::mark(std::uint32_t address, std::uint32_t n, std::uint8_t set,
                       std::uint8_t clear) {
  std::uint8_t* const state = state_.get() + (address - kSharedBase);
  std::uint8_t const keep = static_cast<std::uint8_t>(~clear);
  std::uint32_t i = 0;
  for (; i + 8 <= n; i += 8) mark_eight(state + i, set, clear);
  for (; i < n; ++i) state[i] = static_cast<std::uint8_t>((state[i] & keep) | set);
}

void SharedState::add_reader(std::uint32_t address, std::uint32_t n) {
  if (readers_.empty()) readers_.resize(bytes_ / kPiece + 1);
  std::uint32_t const end = (address - kSharedBase + n + kPiece - 1) / kPiece;
  for (std::uint32_t piece = (address - kSharedBase) / kPiece; piece < end; ++piece) {
    if (readers_[piece]++ == 0) mark_piece(piece, kBeingRead, 0);
  }
}

void SharedState::remove_reader(std::uint32_t address, std::uint32_t n) {
  std::uint32_t const end = (address - kSharedBase + n + kPiece - 1) / kPiece;
  for (std::uint32_t piece = (address - kSharedBase) / kPiece; piece < end; ++piece) {
    if (--readers_[piece] == 0) mark_piece(piece, 0, kBeingRead);
  }
}

void SharedState::mark_piece(std::uint32_t piece, std::uint8_t set, std::uint8_t clear) {
  std::uint8_t* const state = state_.get() + std::size_t{kPiece} * piece;
  for (std::uint32_t i = 0; i < kPiece; i += 8) mark_eight(state + i, set, clear);
}

}  // namespace tegula::sim
