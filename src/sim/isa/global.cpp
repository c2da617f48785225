#include <fmt/format.h>

#include <cstring>

#include "isa/perform.hpp"

/// Loads and stores of global memory; fences; what orders a grid after others.
namespace tegula::sim {

namespace {

void load(Instruction instruction, void* value, void const* address, int bytes,
          SourceLocation where) {
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
  if (cta.global_access(Instruction::st_global, address, bytes, GlobalAccess::write, where,
                        bytes)) {
    cta.cluster().progressed();
    std::memcpy(address, value, static_cast<std::size_t>(bytes));
  }
}

void fence(Scope scope, SourceLocation where) {
  Mutation const without = scope == Scope::cta ? Mutation::weakened : Mutation::none;
  perform(Instruction::fence, where, without, [=](Cta& cta, Mutation m) {
    cta.note(Instruction::fence, where);
    if (cta.finding_races())
      cta.observers().memory_fenced(cta, m == Mutation::weakened ? Scope::cta : scope, where);
  });
}

// Who sleeps lets others run.
void nanosleep(int nanoseconds, SourceLocation where) {
  constexpr int most = 1'000'000;
  Cta& cta = current_cta();
  cta.note(Instruction::nanosleep, where);
  if (nanoseconds < 0 || nanoseconds > most) {
    cta.fail(FindingKind::invalid_operand, where, cta.here(),
             fmt::format("nanosleep of {} ns: it takes 0 to {}", nanoseconds, most));
  }
  cta.cluster().yield();
}

// Launches run one after another: what a grid may touch of the memory of others is checked,
// not delayed.
void griddepcontrol_wait(SourceLocation where) {
  perform(Instruction::griddepcontrol_wait, where, [=](Cta& cta) {
    cta.note(Instruction::griddepcontrol_wait, where);
    if (cta.finding_races()) cta.observers().grids_waited(cta);
  });
}

void griddepcontrol_launch_dependents(SourceLocation where) {
  perform(Instruction::griddepcontrol_launch_dependents, where,
          [=](Cta& cta) { cta.note(Instruction::griddepcontrol_launch_dependents, where); });
}

}  // namespace tegula::sim
