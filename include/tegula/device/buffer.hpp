#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tegula/device/machine.hpp"

namespace tegula {

/// Bytes in a machine's global memory, aligned to 256 bytes, freed with this object. Reports of a
/// simulated machine call them by `name`.
class Allocation {
 public:
  /// Throws argument_error for a negative size, device_error where there is not enough memory.
  Allocation(Machine const& machine, std::int64_t bytes, std::string name);

  void* data() const { return data_.get(); }  ///< a device pointer; null for 0 bytes
  std::int64_t bytes() const { return bytes_; }
  std::string const& name() const { return name_; }

  /// Copies `bytes` host bytes to [offset, offset + bytes); returns when the host memory may be
  /// changed. Throws argument_error beyond the end, and for a null pointer.
  void upload(void const* from, std::int64_t bytes, std::int64_t offset = 0);
  /// Copies back; waits for work on the default stream. Throws argument_error likewise.
  void download(void* to, std::int64_t bytes, std::int64_t offset = 0) const;
  /// Sets every byte, as a canary or a poison.
  void fill(std::uint8_t byte);

 private:
  void check_range(char const* operation, std::int64_t bytes, std::int64_t offset) const;

  std::shared_ptr<device::Backend> backend_;
  std::shared_ptr<void> data_;
  std::int64_t bytes_ = 0;
  std::string name_;
};

/// `size` elements of T in a machine's global memory.
template <class T> class Buffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  /// Never written: on a simulated machine a kernel that reads it is reported.
  Buffer(Machine const& machine, std::int64_t size, std::string const& name)
      : allocation_(machine, byte_count(size, name), name), size_(size) {}
  /// Holding a copy of `values`.
  Buffer(Machine const& machine, std::span<T const> values, std::string const& name)
      : Buffer(machine, static_cast<std::int64_t>(values.size()), name) {
    upload(values);
  }
  Buffer(Machine const& machine, std::vector<T> const& values, std::string const& name)
      : Buffer(machine, std::span<T const>(values), name) {}

  T* data() const { return static_cast<T*>(allocation_.data()); }  ///< a device pointer
  std::int64_t size() const { return size_; }
  std::string const& name() const { return allocation_.name(); }

  /// Copies host values to elements [offset, ...). Throws argument_error beyond the end.
  void upload(std::span<T const> values, std::int64_t offset = 0) {
    std::int64_t at = 0;
    if (__builtin_mul_overflow(offset, element_bytes, &at))
      throw argument_error("Buffer: the offset " + std::to_string(offset) + " in " + name() +
                           " is beyond 64 bits of bytes; it must lie in the buffer's " +
                           std::to_string(size_) + " elements.");
    allocation_.upload(values.data(), static_cast<std::int64_t>(values.size_bytes()), at);
  }
  /// All elements; waits for work on the default stream. What nobody wrote holds bytes of 0xff on a
  /// simulated machine.
  std::vector<T> download() const {
    std::vector<T> values(static_cast<std::size_t>(size_));
    allocation_.download(values.data(), allocation_.bytes());
    return values;
  }
  /// Sets every byte, as a canary or a poison.
  void fill(std::uint8_t byte) { allocation_.fill(byte); }

 private:
  static constexpr auto element_bytes = static_cast<std::int64_t>(sizeof(T));
  static std::int64_t byte_count(std::int64_t size, std::string const& name) {
    std::int64_t bytes = 0;
    if (__builtin_mul_overflow(size, element_bytes, &bytes))
      throw argument_error("Buffer: " + name + " would have " + std::to_string(size) +
                           " elements, more than 64 bits of bytes.");
    return bytes;
  }

  Allocation allocation_;
  std::int64_t size_;
};

}  // namespace tegula
