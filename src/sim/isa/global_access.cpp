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

void Cta::races_with_launch(Instruction instruction, GlobalAccess access, Allocation const& memory,
                            std::size_t offset, Where where) {
  std::string const place = memory.place(offset);
  std::string const what = fmt::format("{} {} {}", ptx_name(instruction), verb(access, instruction), place);
  if (memory.constant) {
    report(FindingKind::data_race, where, here(), memory.name, place,
           what + ", which is constant: the launches beside this one may read it meanwhile");
    return;
  }
  report(FindingKind::data_race, where, here(), memory.name, place,
         fmt::format("{}, which the launch before this one may still {}", what,
                     access == GlobalAccess::read ? "write" : "read or write"),
         {{},
          {-1, -1, -1},
          "a griddepcontrol_wait by this thread, or by one that a barrier or an mbarrier orders before it, "
          "would order them"});
}

void Cta::griddepcontrol_wait(Where where) {
  note(Instruction::griddepcontrol_wait, where);
  cluster_.wait_for_grids(current_thread().agent);
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
  bool const early = !after_launches(access, *memory);
  if (early) [[unlikely]]
    races_with_launch(instruction, access, *memory, offset, where);
  bool const races =
      cluster_.global_races().on() && !cluster_.global_races().access(instruction, access, address, n, where);
  std::uint8_t* const shadow = memory->shadow + offset;
  if (access == GlobalAccess::write) {
    std::memset(shadow, 1, n);
    memory->note_written(offset, n);
    return true;
  }
  memory->note_read(offset, n);
  if (!races && !early && std::memchr(shadow, 0, n) != nullptr) [[unlikely]] {
    std::size_t const at = offset + static_cast<std::size_t>(std::find(shadow, shadow + n, 0) - shadow);
    report(FindingKind::uninitialized_read, where, here(), memory->name, memory->place(at),
           fmt::format("{} reads {}, which nobody has written", ptx_name(instruction), memory->place(at)));
  }
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
  if (cluster_.global_races().on()) cluster_.global_races().atomic(address, writes);
  if (writes) {
    Allocation const& memory = *allocation(address);
    memory.note_written(memory.offset_of(address), 4);
  }
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
  if (races_) cluster_.causality().fence_threads(current_thread().agent, of_cta);
  if (cluster_.global_races().on()) cluster_.global_races().fence(of_cta, where);
}

}  // namespace tegula::sim
