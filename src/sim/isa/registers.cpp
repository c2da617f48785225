#include <fmt/format.h>

#include "isa/current_cta.hpp"
#include "isa/tcgen05.hpp"
#include "isa/wgmma.hpp"
#include "machine/cluster.hpp"
#include "tegula/sim/hooks.hpp"
#include "values/place.hpp"

/// Registers that instructions in flight hold.
namespace tegula::sim {

void touch_register(void const* place, SourceLocation where) {
  Cta* const cta = running_cta();
  if (cta == nullptr || !cta->checking()) return;
  check_wgmma_register(*cta, place, where);
  InFlight* const load = being_loaded(cta->current_warp(), cta->current_thread().lane, place);
  if (load == nullptr) return;
  cta->report(
      FindingKind::register_race, where, cta->here(), "", "",
      fmt::format("a register is accessed while the tcgen05.ld of {}, which loads it, is in "
                  "flight",
                  place_text(load->where)),
      {load->where, {-1, -1, -1}, "a tcgen05_wait_ld before the access would order them"});
  // Later, what was on the thread's stack may be there no more.
  cta->in_flight().land(*load);
}

}  // namespace tegula::sim
