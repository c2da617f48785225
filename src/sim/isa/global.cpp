#include <fmt/format.h>

#include <cstring>
#include <string>

#include "isa/perform.hpp"
#include "tegula/io/text.hpp"
#include "tegula/sim/generation.hpp"

/// Loads and stores of global memory; fences; what orders a grid after others.
namespace tegula::sim {

namespace {

/// Fails where one instruction is to move more than the machine's can.
void check_width(Cta& cta, Instruction instruction, int bytes, SourceLocation where) {
  ArchSpec const& spec = spec_of(cta.generation());
  if (bytes <= 16 || spec.tensor_memory) return;
  cta.fail(FindingKind::invalid_operand, where, cta.here(),
           fmt::format("{} of {} bytes (.v8.b32) on an sm_{}: it is for sm_100",
                       ptx_name(instruction), bytes, spec.compute_capability));
}

void load(Instruction instruction, void* value, void const* address, int bytes,
          SourceLocation where) {
  Cta& cta = current_cta();
  check_width(cta, instruction, bytes, where);
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
  check_width(cta, Instruction::st_global, bytes, where);
  cta.note(Instruction::st_global, where, {.global_bytes = bytes, .global = address});
  if (cta.global_access(Instruction::st_global, address, bytes, GlobalAccess::write, where,
                        bytes)) {
    cta.cluster().progressed();
    std::memcpy(address, value, static_cast<std::size_t>(bytes));
  }
}

// Caches are not modelled. Which addresses a prefetch takes PTX does not say: nothing is held
// against any.
void prefetch_global(void const*, SourceLocation where) {
  current_cta().note(Instruction::prefetch, where);
}

namespace {

/// What applypriority and discard name: their only size, and a multiple of it.
constexpr int kCacheLine = 128;

}  // namespace

void apply_priority(void const* address, SourceLocation where) {
  constexpr Instruction instruction = Instruction::applypriority;
  Cta& cta = current_cta();
  cta.note(instruction, where);
  Allocation const* const memory = cta.allocation(address);
  auto const refuse = [&](FindingKind kind, std::string const& why) {
    cta.report(kind, where, cta.here(), memory != nullptr ? memory->name : "", "",
               fmt::format("{} of {} bytes{}", ptx_name(instruction), kCacheLine, why));
  };
  if (memory == nullptr || !memory->contains(address, kCacheLine))
    return refuse(FindingKind::out_of_bounds, cta.outside_place(address));
  auto const misfit = static_cast<int>(reinterpret_cast<std::uintptr_t>(address) % kCacheLine);
  if (misfit != 0)
    refuse(FindingKind::misaligned,
           fmt::format(" at byte {} of {}, {} past a multiple of {}", memory->offset_of(address),
                       memory->name, io::counted(misfit, "byte"), kCacheLine));
}

// To the machine a write of what reads as 0xff; that nobody has written it, the checker knows.
void discard_global(void* address, SourceLocation where) {
  constexpr Instruction instruction = Instruction::discard;
  Cta& cta = current_cta();
  cta.note(instruction, where);
  if (cta.global_access(instruction, address, kCacheLine, GlobalAccess::write, where, kCacheLine)) {
    cta.cluster().progressed();
    std::memset(address, 0xff, kCacheLine);
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
