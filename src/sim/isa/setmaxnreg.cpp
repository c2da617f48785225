#include <fmt/format.h>

#include "isa/perform.hpp"
#include "isa/wgmma.hpp"

/// setmaxnreg: registers that warpgroups give to one another.
namespace tegula::sim {

namespace {

/// The number is from 24 to 256.
Mutation no_room(int registers) {
  return registers == 24 ? Mutation::less : registers == 256 ? Mutation::more : Mutation::none;
}

void setmaxnreg(Cta& cta, Instruction instruction, int registers, SourceLocation where) {
  bool const increase = instruction == Instruction::setmaxnreg_inc;
  if (!cta.meet_warpgroup(instruction, static_cast<std::uint32_t>(registers), where)) return;
  Warpgroup& own = cta.warpgroup();
  int const number = cta.current_thread().index / 128;
  if (cta.checking()) {
    cta.observers().changing_registers(cta, number, increase, where);
    int const held = registers_in_flight(own);
    if (!increase && registers < held) {
      cta.report(
          FindingKind::too_few_registers, where, cta.here(-1), "", "",
          fmt::format(
              "setmaxnreg.dec to {} registers a thread while the wgmma.mma_async in flight hold {}, "
              "accumulators and A: wait for their groups first",
              registers, held));
    }
  }
  if (increase ? registers < own.registers : registers > own.registers) {
    cta.report(
        FindingKind::invalid_operand, where, cta.here(-1), "", "",
        fmt::format("setmaxnreg.{} to {} registers a thread, {} the {} that the warpgroup has",
                    increase ? "inc" : "dec", registers, increase ? "below" : "above",
                    own.registers));
  } else {
    int const more = 128 * (registers - own.registers);
    own.wanted_registers = more;
    own.wants_registers_where = where;
    cta.cluster().before({Visible::Kind::registers, cta.rank(), 0, more, nullptr, number});
    cta.take_registers(own, more);
    own.registers = registers;
    own.registers_where = where;
    own.registers_raised = increase;
    if (cta.checking()) cta.observers().registers_changed(cta, number);
  }
  cta.release_warpgroup(where, instruction);
}

}  // namespace

void setmaxnreg_inc(int registers, SourceLocation where) {
  perform(Instruction::setmaxnreg_inc, where, no_room(registers), [=](Cta& cta, Mutation m) {
    setmaxnreg(cta, Instruction::setmaxnreg_inc, counted(registers, m, 8), where);
  });
}
void setmaxnreg_dec(int registers, SourceLocation where) {
  perform(Instruction::setmaxnreg_dec, where, no_room(registers), [=](Cta& cta, Mutation m) {
    setmaxnreg(cta, Instruction::setmaxnreg_dec, counted(registers, m, 8), where);
  });
}

}  // namespace tegula::sim
