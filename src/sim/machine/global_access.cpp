#include <fmt/format.h>

#include <algorithm>

#include "machine/cluster.hpp"
#include "tegula/io/text.hpp"

/// Accesses of threads to global memory.
namespace tegula::sim {

Allocation* Cta::allocation(void const* address) {
  for (Allocation* const recent : recent_) {
    if (recent != nullptr && recent->contains(address, 1)) return recent;
  }
  Allocation* const found = find(*launch_->global, address);
  if (found != nullptr) {
    std::rotate(recent_.begin(), recent_.end() - 1, recent_.end());
    recent_[0] = found;
  }
  return found;
}

std::string Cta::outside_place(void const* address) {
  Allocation const* near = allocation(address);
  if (near == nullptr) near = find_near(*launch_->global, address);
  if (near == nullptr)
    return address == nullptr ? " at a null pointer, which is in no allocation"
                              : " at an address which is in no allocation";
  if (address >= static_cast<void const*>(near->base))
    return fmt::format(" at byte {} of {}, which has {}", near->offset_of(address), near->name,
                       io::counted(near->bytes, "byte"));
  return fmt::format(", {} before the start of {}",
                     io::counted(near->base - static_cast<unsigned char const*>(address), "byte"),
                     near->name);
}

/// As shared_access, for global memory.
bool Cta::global_access(Instruction instruction, void const* address, int bytes,
                        GlobalAccess access, SourceLocation where, int alignment) {
  cluster_.before({.kind = is_strong(instruction)          ? Visible::Kind::atomic
                           : access == GlobalAccess::write ? Visible::Kind::store
                                                           : Visible::Kind::load,
                   .cta = -1,
                   .address = reinterpret_cast<std::uintptr_t>(address),
                   .amount = bytes,
                   .blind = is_strong(instruction) && !strong_learns(instruction)});
  std::size_t const n = static_cast<std::size_t>(bytes);
  Allocation* const memory = allocation(address);
  if (memory == nullptr || !memory->contains(address, n)) [[unlikely]] {
    Allocation const* const near =
        memory != nullptr ? memory : find_near(*launch_->global, address);
    report(FindingKind::out_of_bounds, where, here(), near != nullptr ? near->name : "", "",
           fmt::format("{} of {}{}", ptx_name(instruction), io::counted(bytes, "byte"),
                       outside_place(address)));
    return false;
  }
  std::size_t const offset = memory->offset_of(address);
  if (reinterpret_cast<std::uintptr_t>(address) % static_cast<std::uintptr_t>(alignment) != 0)
      [[unlikely]] {
    report(FindingKind::misaligned, where, here(), memory->name, memory->place(offset),
           fmt::format("{} of {} at byte {} of {}, whose address is no multiple of {}",
                       ptx_name(instruction), io::counted(bytes, "byte"), offset, memory->name,
                       alignment));
  }
  if (!check_) return true;
  observers().global_accessed(*this, {instruction, access, memory, offset, n, where});
  return true;
}

}  // namespace tegula::sim
