#include <fmt/format.h>

#include "isa/current_cta.hpp"
#include "isa/wgmma.hpp"
#include "machine/cluster.hpp"
#include "tegula/sim/hooks.hpp"

/// setmaxnreg: registers that warpgroups give to one another.
namespace tegula::sim {

namespace {

void setmaxnreg(Cta& cta, int registers, bool increase, SourceLocation where) {
  if (!cta.meet_warpgroup(Instruction::setmaxnreg,
                          static_cast<std::uint32_t>(2 * registers + (increase ? 1 : 0)), where))
    return;
  Warpgroup& own = cta.warpgroup();
  int const number = cta.current_thread().index / 128;
  if (cta.checking()) {
    cta.observers().changing_registers(cta, number, increase, where);
    int const held = registers_in_flight(own);
    if (!increase && registers < held) {
      cta.report(
          FindingKind::too_few_registers, where, cta.here(-1), "", "",
          fmt::format("setmaxnreg.dec to {} registers a thread while the wgmma.mma_async in flight hold {}, "
                      "accumulators and A: wait for their groups first",
                      registers, held));
    }
  }
  if (increase ? registers < own.registers : registers > own.registers) {
    cta.report(FindingKind::invalid_operand, where, cta.here(-1), "", "",
               fmt::format("setmaxnreg.{} to {} registers a thread, {} the {} that the warpgroup has",
                           increase ? "inc" : "dec", registers, increase ? "below" : "above", own.registers));
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
  cta.release_warpgroup(where, Instruction::setmaxnreg);
}

}  // namespace

void setmaxnreg_inc(int registers, SourceLocation where) {
  setmaxnreg(current_cta(), registers, true, where);
}
void setmaxnreg_dec(int registers, SourceLocation where) {
  setmaxnreg(current_cta(), registers, false, where);
}

}  // namespace tegula::sim
