#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "checker/checker.hpp"
#include "values/place.hpp"

/// Accesses to global memory, held against its bytes' state, against each other and against
/// other launches.
namespace tegula::sim {

/// Whether the current thread may access global memory, as far as other launches go: one that
/// may be started before those before it have finished comes after them, and none writes what
/// is constant.
bool Checker::after_launches(Cta const& cta, GlobalUse const& use) const {
  if (use.memory->constant) return use.access == GlobalAccess::read;
  return agents_.after_grids(cta.current_thread().agent);
}

void Checker::races_with_launch(Cta& cta, GlobalUse const& use) {
  Allocation const& memory = *use.memory;
  Instruction const instruction = use.instruction;
  GlobalAccess const access = use.access;
  SourceLocation const where = use.where;
  std::string const place = memory.place(use.offset);
  std::string const what =
      fmt::format("{} {} {}", ptx_name(instruction), verb(access, instruction), place);
  if (memory.constant) {
    cta.report(FindingKind::data_race, where, cta.here(), memory.name, place,
               what + ", which is constant: the launches beside this one may read it meanwhile");
    return;
  }
  cta.report(
      FindingKind::data_race, where, cta.here(), memory.name, place,
      fmt::format("{}, which the launch before this one may still {}", what,
                  access == GlobalAccess::read ? "write" : "read or write"),
      {{},
       {-1, -1, -1},
       "a griddepcontrol_wait by this thread, or by one that a barrier or an mbarrier orders before it, "
       "would order them"});
}

void Checker::global_reached(Cta& cta, GlobalUse const& use) {
  if (!after_launches(cta, use)) races_with_launch(cta, use);
}

void Checker::global_accessed(Cta& cta, GlobalUse const& use) {
  Allocation const& memory = *use.memory;
  std::size_t const offset = use.offset, n = use.bytes;
  bool const early = !after_launches(cta, use);
  if (early) [[unlikely]]
    races_with_launch(cta, use);
  // Strong accesses are held against others when they are performed, with their scope.
  bool const races =
      global_races_.on() && !is_strong(use.instruction) &&
      !global_races_.access(use.instruction, use.access, memory.base + offset, n, use.where);
  std::uint8_t* const shadow = memory.shadow + offset;
  bool const stores = use.access == GlobalAccess::write ||
                      (is_strong(use.instruction) && !strong_reads(use.instruction));
  if (use.instruction == Instruction::discard) {  // PTX ISA, discard: of an indeterminate value
    std::memset(shadow, 0, n);
    return;
  }
  if (stores) {
    std::memset(shadow, 1, n);
    memory.note_written(offset, n);
    return;
  }
  memory.note_read(offset, n);
  if (!races && !early && std::memchr(shadow, 0, n) != nullptr) [[unlikely]] {
    std::size_t const at =
        offset + static_cast<std::size_t>(std::find(shadow, shadow + n, 0) - shadow);
    GlobalSite const* const last =
        global_races_.on() ? global_races_.last_changed_by(memory.base + at) : nullptr;
    bool const discarded = last != nullptr && last->instruction == Instruction::discard;
    cta.report(
        FindingKind::uninitialized_read, use.where, cta.here(), memory.name, memory.place(at),
        fmt::format("{} reads {}, which {}", ptx_name(use.instruction), memory.place(at),
                    discarded ? fmt::format("a {} has left undefined ({}): it must be "
                                            "written before it is read",
                                            ptx_name(last->instruction), place_text(last->where))
                              : "nobody has written"));
  }
}

void Checker::strong_access_performed(Cta& cta, StrongAccess const& access) {
  if (access.shared && races_) strong_shared_access(cta, access);
  if (global_races_.on()) global_races_.strong(access);
  if (races_) wait_order_.strong_access(cta.current_thread(), access.reads, access.writes);
  if (access.shared || !access.writes) return;
  Allocation const& memory = *cta.allocation(access.address);
  memory.note_written(memory.offset_of(access.address), static_cast<std::size_t>(access.bytes));
}

}  // namespace tegula::sim
