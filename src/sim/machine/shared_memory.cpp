#include "machine/shared_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

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

void SharedMemory::Free::operator()(unsigned char* p) const { std::free(p); }

void SharedMemory::reset(std::size_t bytes) {
  if (bytes > capacity_ || !data_) {
    std::size_t const whole =
        (bytes / 1024 + 1) * 1024;  // a kernel's storage has an address even if it is empty
    data_.reset(static_cast<unsigned char*>(std::aligned_alloc(1024, whole)));
    if (!data_) throw std::bad_alloc();
    state_ = std::make_unique<std::uint8_t[]>(whole);
    capacity_ = whole;
  }
  bytes_ = bytes;
  readers_.clear();
  if (bytes == 0) return;
  std::memset(data_.get(), 0xff, bytes);
  std::memset(state_.get(), 0, bytes);
}

std::uint32_t SharedMemory::first_other(std::uint32_t address, std::uint32_t n, std::uint8_t mask,
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

void SharedMemory::mark(std::uint32_t address, std::uint32_t n, std::uint8_t set, std::uint8_t clear) {
  std::uint8_t* const state = state_.get() + (address - kSharedBase);
  std::uint8_t const keep = static_cast<std::uint8_t>(~clear);
  std::uint32_t i = 0;
  for (; i + 8 <= n; i += 8) mark_eight(state + i, set, clear);
  for (; i < n; ++i) state[i] = static_cast<std::uint8_t>((state[i] & keep) | set);
}

void SharedMemory::add_reader(std::uint32_t address, std::uint32_t n) {
  if (readers_.empty()) readers_.resize(bytes_ / kPiece + 1);
  std::uint32_t const end = (address - kSharedBase + n + kPiece - 1) / kPiece;
  for (std::uint32_t piece = (address - kSharedBase) / kPiece; piece < end; ++piece) {
    if (readers_[piece]++ == 0) mark_piece(piece, kBeingRead, 0);
  }
}

void SharedMemory::remove_reader(std::uint32_t address, std::uint32_t n) {
  std::uint32_t const end = (address - kSharedBase + n + kPiece - 1) / kPiece;
  for (std::uint32_t piece = (address - kSharedBase) / kPiece; piece < end; ++piece) {
    if (--readers_[piece] == 0) mark_piece(piece, 0, kBeingRead);
  }
}

void SharedMemory::mark_piece(std::uint32_t piece, std::uint8_t set, std::uint8_t clear) {
  std::uint8_t* const state = state_.get() + std::size_t{kPiece} * piece;
  for (std::uint32_t i = 0; i < kPiece; i += 8) mark_eight(state + i, set, clear);
}

SharedBuffer const* buffer_at(std::vector<SharedBuffer> const& buffers, std::uint32_t address) {
  std::size_t const offset = address - kSharedBase;
  for (SharedBuffer const& buffer : buffers) {
    if (offset >= buffer.offset && offset - buffer.offset < buffer.bytes) return &buffer;
  }
  return nullptr;
}

std::string place_in(SharedBuffer const& buffer, std::uint32_t address) {
  std::size_t const bit = 8 * (address - kSharedBase - buffer.offset);
  std::size_t const element_bits = static_cast<std::size_t>(buffer.element_bits);
  std::string place = buffer.locate(static_cast<std::int64_t>(bit / element_bits));
  if (bit % element_bits != 0) place = fmt::format("byte {} of {}", bit % element_bits / 8, place);
  return fmt::format("{} of {}", place, buffer.name);
}

}  // namespace tegula::sim
