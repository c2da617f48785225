#include <fmt/format.h>

#include <exception>

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
  leave_registers(cta->current_warp(), cta->current_thread().lane, place, 4);
}

void use_fragment(void const* first, int bytes, FragmentUse use) noexcept {
  Cta* const cta = running_cta();
  if (cta == nullptr) return;
  // A thread that leaves its kernel early has its finding.
  bool const report = cta->checking() && std::uncaught_exceptions() == 0;
  use_wgmma_fragment(*cta, first, bytes, use, report);
  if (cta->current_warp().tensor_loads.operations().empty()) return;
  for (int at = 0; at < bytes; at += 4) {
    void const* const place = static_cast<char const*>(first) + at;
    InFlight* const load = being_loaded(cta->current_warp(), cta->current_thread().lane, place);
    if (load == nullptr) continue;
    if (report)
      cta->report(FindingKind::register_race, load->where, cta->here(), "", "",
                  fmt::format("the fragment that this tcgen05.ld loads {} while it is in flight",
                              text_of(use).verb),
                  {{},
                   {-1, -1, -1},
                   fmt::format("a tcgen05_wait_ld before {} would order them", text_of(use).noun)});
    cta->in_flight().land(*load);
    leave_registers(cta->current_warp(), cta->current_thread().lane, first, bytes);
  }
}

void read_unwritten_register(int value, int const* steps, int axes, SourceLocation where) {
  Cta* const cta = running_cta();
  if (cta == nullptr || !cta->checking()) return;
  std::string place;
  for (int axis = 0; axis < axes; ++axis)
    place += fmt::format("{}{}", axis == 0 ? "" : ", ", steps[axis]);
  cta->report(
      FindingKind::uninitialized_read, where, cta->here(), "", "",
      fmt::format("value {} of a fragment, ({}) from the thread's first, is read, and nobody "
                  "has written its register: clear or fill the fragment, or copy into it",
                  value, place));
}

void beyond_fragment(int index, int extent, int mode, SourceLocation where) {
  Cta* const cta = running_cta();
  if (cta == nullptr || !cta->checking()) return;
  std::string const what =
      mode < 0 ? fmt::format("a fragment of {} value{}", extent, extent == 1 ? "" : "s")
               : fmt::format("a fragment whose mode {} has extent {}", mode, extent);
  cta->report(FindingKind::out_of_bounds, where, cta->here(), "", "",
              fmt::format("index {} of {}: it has no such register", index, what));
}

FragmentUseText text_of(FragmentUse use) {
  constexpr FragmentUseText texts[] = {{"is copied", "the copy"},
                                       {"is assigned to", "the assignment"},
                                       {"goes out of scope", "the end of that scope"}};
  return texts[static_cast<int>(use)];
}

}  // namespace tegula::sim
