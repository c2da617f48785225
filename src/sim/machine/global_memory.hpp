#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tegula/sim/global_tensor.hpp"

namespace tegula::sim {

enum class GlobalAccess : std::uint8_t { read, write, atomic };

/// Bytes around each allocation that belong to nobody, so that an access just outside is known
/// as such.
inline constexpr std::size_t kGlobalGuardBytes = 4096;

/// Sets bytes to 0xff. Threads may do so at once. `to` lies in an array as the bytes that it stands
/// for lie in an allocation, so that what is aligned there is aligned here.
inline void mark(std::uint8_t* to, std::size_t n) {
  auto const set = [&]<class Word>(Word ones) {
    std::atomic_ref<Word> const word(*reinterpret_cast<Word*>(to));
    if (word.load(std::memory_order_relaxed) != ones) word.store(ones, std::memory_order_relaxed);
    to += sizeof(Word);
    n -= sizeof(Word);
  };
  while (n != 0) {
    auto const misfit = reinterpret_cast<std::uintptr_t>(to);
    if (n >= 8 && misfit % 8 == 0) {
      set(~std::uint64_t{0});
    } else if (n >= 4 && misfit % 4 == 0) {
      set(~std::uint32_t{0});
    } else {
      set(std::uint8_t{0xff});
    }
  }
}

/// One allocation of global memory and its shadow: a byte for each byte, 1 once it was written.
struct Allocation {
  Allocation(std::size_t bytes, std::string name);
  ~Allocation();
  Allocation(Allocation const&) = delete;
  Allocation& operator=(Allocation const&) = delete;

  std::string name;
  std::size_t bytes;
  unsigned char* base;
  unsigned char* shadow;
  bool constant = false;  ///< no launch may write to it
  // Of the launch that runs; LaunchTensors sets them.
  std::vector<GlobalTensor const*> tensors;  ///< that it describes
  /// a byte for each byte, not 0 where it has read it; null: nobody asks
  std::uint8_t* read = nullptr;
  std::uint8_t* written = nullptr;  ///< likewise

  void note_read(std::size_t offset, std::size_t n) const {
    if (read != nullptr) mark(read + offset, n);
  }
  void note_written(std::size_t offset, std::size_t n) const {
    if (written != nullptr) mark(written + offset, n);
  }

  bool contains(void const* pointer, std::size_t n) const {
    std::uintptr_t const offset =
        reinterpret_cast<std::uintptr_t>(pointer) - reinterpret_cast<std::uintptr_t>(base);
    return offset < bytes && n <= bytes - offset;
  }
  /// "row 17, column 40 of out" where the launch describes it, or else "byte 40 of out"
  std::string place(std::size_t offset) const;
  std::size_t offset_of(void const* pointer) const {
    return static_cast<std::size_t>(static_cast<unsigned char const*>(pointer) - base);
  }

 private:
  unsigned char* block_;
};

/// The allocations at one moment, sorted by address.
using AllocationTable = std::vector<std::shared_ptr<Allocation>>;

/// The allocation that holds the byte, or null.
Allocation* find(AllocationTable const& table, void const* pointer);
/// The allocation whose guard the byte lies in, or null.
Allocation* find_near(AllocationTable const& table, void const* pointer);

/// The allocations of a machine. Safe to use from several host threads; a launch works on the table
/// as it was when it began.
class GlobalMemory {
 public:
  void* allocate(std::size_t bytes, std::string name);
  void deallocate(void* pointer);
  /// The allocation that holds all n bytes; throws std::invalid_argument that names `operation`.
  std::shared_ptr<Allocation> at(char const* operation, void const* pointer, std::size_t n) const;
  std::shared_ptr<AllocationTable const> table() const;

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<AllocationTable const> table_ = std::make_shared<AllocationTable>();
};

}  // namespace tegula::sim
