#include "machine/shared_memory.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <new>

namespace tegula::sim {

void SharedMemory::Free::operator()(unsigned char* p) const { std::free(p); }

void SharedMemory::reset(std::size_t bytes) {
  if (bytes > capacity_ || !data_) {
    std::size_t const whole =
        (bytes / 1024 + 1) * 1024;  // a kernel's storage has an address even if it is empty
    data_.reset(static_cast<unsigned char*>(std::aligned_alloc(1024, whole)));
    if (!data_) throw std::bad_alloc();
    capacity_ = whole;
  }
  bytes_ = bytes;
  if (bytes != 0) std::memset(data_.get(), 0xff, bytes);
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
