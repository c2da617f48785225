#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tegula/device/buffer.hpp"
#include "tegula/device/machine.hpp"

/// Arrays of the caller on a simulated machine: its memory is its own, so they are copied there
/// and back.
namespace tegula::c {

/// Rows of contiguous elements in the caller's memory, which three axes step over. In bytes.
struct HostArray {
  char const* name = "";  ///< in reports
  void const* address = nullptr;
  std::int64_t row = 0;
  std::array<std::int64_t, 3> extents = {1, 1, 1};
  std::array<std::int64_t, 3> strides = {0, 0, 0};  ///< at least 0

  std::int64_t bytes() const;  ///< from the first to the last
};

/// Contiguous values of four bytes.
inline HostArray table(char const* name, void const* address, std::int64_t count) {
  return {.name = name, .address = address, .row = 4 * count};
}

/// Throws argument_error where copies of these arrays, with a byte of the checker's beside each of
/// theirs, are more than the memory that is free.
void require_memory(char const* operation, std::initializer_list<HostArray> arrays);

/// A place of the same size in a simulated machine's memory, as far past a multiple of 256 bytes as
/// the caller's is past one of 16, so that the same kernels can address it. Bytes between the rows
/// stay unwritten there, and a kernel that reads them is found out.
class OnMachine {
 public:
  /// Nothing where the array's address is null.
  OnMachine(Machine const& machine, HostArray const& array);
  /// The machine's pointer; null where there is no array.
  void* data() const;
  void upload();
  /// Writes the rows to `to`, which is the caller's address.
  void download(void* to) const;
  /// Writes the bytes from `offset` on to `to`, which is the caller's address of them.
  void download(void* to, std::int64_t offset, std::int64_t bytes) const;

 private:
  HostArray array_;
  std::int64_t shift_ = 0;
  std::optional<Allocation> allocation_;
};

/// All that a launch on a simulated machine reads and writes, there. Each function takes the
/// caller's pointer and leaves the machine's, null where the array's address is.
class OperandsOnMachine {
 public:
  explicit OperandsOnMachine(Machine const& machine) : machine_(machine) {}

  template <class T> void input(T*& pointer, HostArray const& array) {
    pointer = static_cast<T*>(place(array).data());
    arrays_.back().upload();
  }
  /// `keeps`: what the kernel does not write stays as the caller has it.
  template <class T> void output(T*& pointer, HostArray const& array, bool keeps = false) {
    void* const to = pointer;
    pointer = static_cast<T*>(place(array).data());
    if (keeps) arrays_.back().upload();
    results_.push_back({&arrays_.back(), to});
  }
  /// Copies the outputs back.
  void download() const {
    for (auto const& [array, to] : results_) array->download(to);
  }

 private:
  OnMachine& place(HostArray const& array) { return arrays_.emplace_back(machine_, array); }

  Machine const& machine_;
  std::list<OnMachine> arrays_;
  std::vector<std::pair<OnMachine const*, void*>> results_;
};

/// Contiguous bytes of the caller's, on a simulated machine. Those that share bytes with others
/// there share them on the machine too, in one copy: of copies of their own, the last that is
/// copied back would take away what was written to the others.
class BytesOnMachine {
 public:
  struct Bytes {
    char const* name = "";  ///< in reports
    void* address = nullptr;
    std::int64_t count = 0;
    bool is_constant = false;  ///< it is not copied back, but for what it shares with one that is
  };

  BytesOnMachine(Machine const& machine, std::vector<Bytes> const& all);
  /// The machine's pointer; null where the caller's is.
  void* data(std::size_t index) const { return pointers_[index]; }
  void download() const;

 private:
  struct Shared {
    OnMachine copy;
    void* address;             ///< the caller's first byte of it
    std::vector<Bytes> parts;  ///< in it
  };

  std::list<Shared> shared_;
  std::vector<void*> pointers_;
};

}  // namespace tegula::c
