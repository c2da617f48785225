#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tegula/sim/machine.hpp"

namespace tegula::sim {

/// Where SharedStorage begins in the CTA's shared window: an H100 keeps the first 1024 bytes
/// to itself.
inline constexpr std::uint32_t kSharedBase = 1024;

/// A CTA's shared memory.
class SharedMemory {
 public:
  /// Makes room for `bytes` bytes, which hold 0xff.
  void reset(std::size_t bytes);

  unsigned char* data() { return data_.get(); }
  std::size_t bytes() const { return bytes_; }
  bool contains(std::uint32_t address, std::uint32_t n) const {
    std::uint32_t const offset = address - kSharedBase;
    return offset < bytes_ && n <= bytes_ - offset;
  }
  unsigned char* at(std::uint32_t address) { return data_.get() + (address - kSharedBase); }

 private:
  struct Free {
    void operator()(unsigned char* p) const;
  };
  std::unique_ptr<unsigned char, Free> data_;
  std::size_t bytes_ = 0;
  std::size_t capacity_ = 0;
};

/// The buffer that holds a shared address, or null, and the address's place in it: "row 17,
/// column 40 of K".
SharedBuffer const* buffer_at(std::vector<SharedBuffer> const& buffers, std::uint32_t address);
std::string place_in(SharedBuffer const& buffer, std::uint32_t address);

}  // namespace tegula::sim
