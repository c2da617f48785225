#include <algorithm>
#include <bit>
#include <cstring>

#include "isa/current_cta.hpp"
#include "machine/cluster.hpp"
#include "tegula/sim/hooks.hpp"

/// Loads, stores and atomics on global memory; fences; what orders a grid after others.
namespace tegula::sim {

namespace {

void load(Instruction instruction, void* value, void const* address, int bytes, SourceLocation where) {
  Cta& cta = current_cta();
  cta.note(instruction, where, {.global_bytes = bytes, .global = address});
  if (cta.global_access(instruction, address, bytes, GlobalAccess::read, where, bytes)) {
    cta.cluster().watch_read(address, false, where);
    std::memcpy(value, address, static_cast<std::size_t>(bytes));
  } else {
    std::memset(value, 0xff, static_cast<std::size_t>(bytes));
  }
}

}  // namespace

void ld_global(void* value, void const* address, int bytes, SourceLocation where) {
  load(Instruction::ld_global, value, address, bytes, where);
}

void ld_global_nc(void* value, void const* address, int bytes, SourceLocation where) {
  load(Instruction::ld_global_nc, value, address, bytes, where);
}

void st_global(void* address, void const* value, int bytes, SourceLocation where) {
  Cta& cta = current_cta();
  cta.note(Instruction::st_global, where, {.global_bytes = bytes, .global = address});
  if (cta.global_access(Instruction::st_global, address, bytes, GlobalAccess::write, where, bytes)) {
    cta.cluster().progressed();
    std::memcpy(address, value, static_cast<std::size_t>(bytes));
  }
}

std::uint32_t atomic(AtomicOp op, void* address, std::uint32_t value, std::uint32_t expected,
                     SourceLocation where) {
  Cta& cta = current_cta();
  cta.note(Instruction::atom, where, {.global_bytes = 4, .global = address});
  cta.cluster().take_turn();
  if (!cta.global_access(Instruction::atom, address, 4, GlobalAccess::atomic, where, 4)) return 0xffffffffu;
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
  if (cta.checking()) cta.observers().atomic_performed(cta, address, writes);
  if (result == old) {
    cta.cluster().watch_read(address, false, where);
  } else {
    std::memcpy(address, &result, 4);
    cta.cluster().progressed();
  }
  return old;
}

void fence(int scope, SourceLocation where) {
  constexpr int cta_scope = 0;  // of tegula::Scope
  Cta& cta = current_cta();
  cta.note(Instruction::fence, where);
  if (cta.finding_races()) cta.observers().memory_fenced(cta, scope == cta_scope, where);
}

// Launches run one after another: what a grid may touch of the memory of others is checked, not delayed.
void griddepcontrol_wait(SourceLocation where) {
  Cta& cta = current_cta();
  cta.note(Instruction::griddepcontrol_wait, where);
  if (cta.finding_races()) cta.observers().grids_waited(cta);
}

void griddepcontrol_launch_dependents(SourceLocation where) {
  current_cta().note(Instruction::griddepcontrol_launch_dependents, where);
}

}  // namespace tegula::sim
