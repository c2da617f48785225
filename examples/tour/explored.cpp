// Every order of a kernel's steps: docs/checker.md quotes this file.
#include <cstdio>

#include "tegula/arch/atomic.hpp"
#include "tegula/arch/barrier.hpp"
#include "tegula/arch/mbarrier.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/sim/explore.hpp"
#include "tegula/sim/launch.hpp"

using namespace tegula;

/// Two warps draw tickets. Who has the second one waits for warp 0, which is right only where that
/// came first.
struct two_tickets {
  struct Params {
    std::uint32_t* tickets;
  };
  struct SharedStorage {
    Mbarrier ready;
    template <class F> void name_buffers(F&& name) { name("ready", ready); }
  };
  static constexpr int threads = 64;

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    SharedAddr const ready = shared_address(&smem.ready);
    if (thread_idx() == 0) mbarrier_init(ready, 1);
    cta::sync();
    if (lane_id() != 0) return;
    bool const first = atom_add(p.tickets, 1u) == 0;
    if (first && warp_id() == 0) mbarrier_arrive(ready);
    if (!first) mbarrier_wait_parity(ready, 0);
  }
};

int main() {
  sim::Machine machine;
  auto* const tickets =
      static_cast<std::uint32_t*>(machine.allocate(sizeof(std::uint32_t), "tickets"));
  sim::Exploration const explored = sim::explore(machine, [&] {
    machine.fill(tickets, 0, sizeof(std::uint32_t));
    sim::launch<two_tickets>(machine, {1, 1, 1}, {tickets});
  });
  std::printf("%s", explored.text().c_str());
  if (explored.ok()) return 1;

  machine.options().choices = explored.findings.front().choices;  // that order again
  machine.options().count = machine.options().throw_on_finding = false;
  machine.fill(tickets, 0, sizeof(std::uint32_t));
  sim::Report const again = sim::launch<two_tickets>(machine, {1, 1, 1}, {tickets});
  std::printf("\n%s", again.text().c_str());
  return again.ok() ? 1 : 0;
}
