#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace tegula::sim {

/// Bytes around each allocation that belong to nobody, so that an access just outside is known as such.
inline constexpr std::size_t kGlobalGuardBytes = 4096;

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

  bool contains(void const* pointer, std::size_t n) const {
    std::uintptr_t const offset =
        reinterpret_cast<std::uintptr_t>(pointer) - reinterpret_cast<std::uintptr_t>(base);
    return offset < bytes && n <= bytes - offset;
  }
  /// "byte 40 of out"
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

/// The allocations of a machine. Safe to use from several host threads; a launch works on the table as it was
/// when it began.
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
