#include "machine/global_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>

#include "tegula/io/text.hpp"
#include "values/global_tensor.hpp"

namespace tegula::sim {

Allocation::Allocation(std::size_t bytes, std::string name) : name(std::move(name)), bytes(bytes) {
  std::size_t const whole = (bytes + 255) / 256 * 256 + 2 * kGlobalGuardBytes;
  block_ = static_cast<unsigned char*>(std::aligned_alloc(256, whole));
  shadow = static_cast<unsigned char*>(std::calloc(bytes, 1));
  if (block_ == nullptr || shadow == nullptr) {
    std::free(block_);
    std::free(shadow);
    throw std::bad_alloc();
  }
  base = block_ + kGlobalGuardBytes;
  std::memset(base, 0xff, bytes);
}

Allocation::~Allocation() {
  std::free(block_);
  std::free(shadow);
}

std::string Allocation::place(std::size_t offset) const {
  std::string const byte = fmt::format("byte {} of {}", offset, name);
  bool between = false;
  for (GlobalTensor const* const tensor : tensors) {
    ElementAt const at = element_at(*tensor, base + offset);
    between |= at.between;
    if (at.coordinate.empty()) continue;
    std::string const element =
        fmt::format("{} of {}", coordinate_text(*tensor, at.coordinate), tensor->name);
    return tensor->name == name ? element : fmt::format("{} ({})", element, byte);
  }
  return between ? byte + " (between rows)" : byte;
}

namespace {

/// The last allocation that begins at or below the address.
Allocation* below(AllocationTable const& table, void const* pointer) {
  auto const above = std::upper_bound(
      table.begin(), table.end(), pointer,
      [](void const* p, auto const& a) { return p < static_cast<void const*>(a->base); });
  return above == table.begin() ? nullptr : std::prev(above)->get();
}

}  // namespace

Allocation* find(AllocationTable const& table, void const* pointer) {
  Allocation* const candidate = below(table, pointer);
  return candidate != nullptr && candidate->contains(pointer, 1) ? candidate : nullptr;
}

Allocation* find_near(AllocationTable const& table, void const* pointer) {
  auto const address = reinterpret_cast<std::uintptr_t>(pointer);
  for (auto const& allocation : table) {
    auto const base = reinterpret_cast<std::uintptr_t>(allocation->base);
    if (address >= base - kGlobalGuardBytes &&
        address < base + allocation->bytes + kGlobalGuardBytes)
      return allocation.get();
  }
  return nullptr;
}

void* GlobalMemory::allocate(std::size_t bytes, std::string name) {
  if (bytes == 0) return nullptr;
  auto allocation = std::make_shared<Allocation>(bytes, std::move(name));
  void* const base = allocation->base;
  std::lock_guard const lock(mutex_);
  auto table = std::make_shared<AllocationTable>(*table_);
  table->insert(std::upper_bound(table->begin(), table->end(), allocation,
                                 [](auto const& a, auto const& b) { return a->base < b->base; }),
                std::move(allocation));
  table_ = std::move(table);
  return base;
}

void GlobalMemory::deallocate(void* pointer) {
  if (pointer == nullptr) return;
  std::lock_guard const lock(mutex_);
  auto table = std::make_shared<AllocationTable>(*table_);
  auto const found =
      std::find_if(table->begin(), table->end(), [&](auto const& a) { return a->base == pointer; });
  if (found == table->end()) {
    throw std::invalid_argument(
        fmt::format("deallocate: {} is not the start of an allocation of this machine", pointer));
  }
  table->erase(found);
  table_ = std::move(table);
}

std::shared_ptr<Allocation> GlobalMemory::at(char const* operation, void const* pointer,
                                             std::size_t n) const {
  auto const current = table();
  for (auto const& allocation : *current) {
    if (allocation->contains(pointer, n)) return allocation;
  }
  Allocation const* const begins = find(*current, pointer);
  if (begins != nullptr) {
    throw std::invalid_argument(fmt::format(
        "{}: {} from byte {} of {} on would go beyond its {}", operation, io::counted(n, "byte"),
        begins->offset_of(pointer), begins->name, io::counted(begins->bytes, "byte")));
  }
  throw std::invalid_argument(
      fmt::format("{}: {} is not in global memory of this machine", operation, pointer));
}

std::shared_ptr<AllocationTable const> GlobalMemory::table() const {
  std::lock_guard const lock(mutex_);
  return table_;
}

}  // namespace tegula::sim
