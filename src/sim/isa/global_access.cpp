#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "machine/cluster.hpp"

/// Loads, stores and atomics on global memory: what they move, and what the checker holds them to.
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

void Cta::griddepcontrol_wait(Where where) {
  note(Instruction::griddepcontrol_wait, where);
  if (races_) observers().grids_waited(*this);
}

/// As shared_access, for global memory.
bool Cta::global_access(Instruction instruction, void const* address, int bytes, GlobalAccess access,
                        Where where, int alignment) {
  cluster_.before({instruction == Instruction::atom ? Visible::Kind::atomic
                   : access == GlobalAccess::write  ? Visible::Kind::store
                                                    : Visible::Kind::load,
                   -1, reinterpret_cast<std::uintptr_t>(address), bytes});
  std::size_t const n = static_cast<std::size_t>(bytes);
  Allocation* const memory = allocation(address);
  if (memory == nullptr || !memory->contains(address, n)) [[unlikely]] {
    Allocation const* const near = memory != nullptr ? memory : find_near(*launch_->global, address);
    std::string text;
    if (near == nullptr) {
      text = fmt::format("{} of {} bytes at {}, which is in no allocation", ptx_name(instruction), bytes,
                         address);
    } else if (address >= static_cast<void const*>(near->base)) {
      text = fmt::format("{} of {} bytes at byte {} of {}, which has {} bytes", ptx_name(instruction), bytes,
                         near->offset_of(address), near->name, near->bytes);
    } else {
      text = fmt::format("{} of {} bytes, {} bytes before the start of {}", ptx_name(instruction), bytes,
                         near->base - static_cast<unsigned char const*>(address), near->name);
    }
    report(FindingKind::out_of_bounds, where, here(), near != nullptr ? near->name : "", "", std::move(text));
    return false;
  }
  std::size_t const offset = memory->offset_of(address);
  if (reinterpret_cast<std::uintptr_t>(address) % static_cast<std::uintptr_t>(alignment) != 0) [[unlikely]] {
    report(FindingKind::misaligned, where, here(), memory->name, memory->place(offset),
           fmt::format("{} of {} bytes at byte {} of {}, whose address is no multiple of {}",
                       ptx_name(instruction), bytes, offset, memory->name, alignment));
  }
  if (!check_) return true;
  observers().global_accessed(*this, {instruction, access, memory, offset, n, where});
  return true;
}

void Cta::ld_global(void* value, void const* address, int bytes, Where where) {
  note(Instruction::ld_global, where, {.global_bytes = bytes, .global = address});
  if (global_access(Instruction::ld_global, address, bytes, GlobalAccess::read, where, bytes)) {
    cluster_.watch_read(address, false, where);
    std::memcpy(value, address, static_cast<std::size_t>(bytes));
  } else {
    std::memset(value, 0xff, static_cast<std::size_t>(bytes));
  }
}

void Cta::st_global(void* address, void const* value, int bytes, Where where) {
  note(Instruction::st_global, where, {.global_bytes = bytes, .global = address});
  if (global_access(Instruction::st_global, address, bytes, GlobalAccess::write, where, bytes)) {
    cluster_.progressed();
    std::memcpy(address, value, static_cast<std::size_t>(bytes));
  }
}

std::uint32_t Cta::atomic(AtomicOp op, void* address, std::uint32_t value, std::uint32_t expected,
                          Where where) {
  note(Instruction::atom, where, {.global_bytes = 4, .global = address});
  cluster_.take_turn();
  if (!global_access(Instruction::atom, address, 4, GlobalAccess::atomic, where, 4)) return 0xffffffffu;
  std::uint32_t old = 0;
  std::memcpy(&old, address, 4);
  std::uint32_t result = value;
  switch (op) {
    case AtomicOp::add_u32:
      result = old + value;
      break;
    case AtomicOp::add_f32:
      result = std::bit_cast<std::uint32_t>(std::bit_cast<float>(old) + std::bit_cast<float>(value));
      break;
    case AtomicOp::max_s32:
      result = static_cast<std::int32_t>(value) > static_cast<std::int32_t>(old) ? value : old;
      break;
    case AtomicOp::max_u32:
      result = std::max(value, old);
      break;
    case AtomicOp::exchange:
      break;
    case AtomicOp::compare_and_swap:
      result = old == expected ? value : old;
      break;
  }
  bool const writes = op != AtomicOp::compare_and_swap || old == expected;
  if (check_) observers().atomic_performed(*this, address, writes);
  if (result == old) {
    cluster_.watch_read(address, false, where);
  } else {
    std::memcpy(address, &result, 4);
    cluster_.progressed();
  }
  return old;
}

void Cta::memory_fence(bool of_cta, Where where) {
  note(Instruction::fence, where);
  if (races_) observers().memory_fenced(*this, of_cta, where);
}

}  // namespace tegula::sim
