// Threads share no kernel to change.
// prints: void operator()(Params const&, SharedStorage&) const

#include "tegula/sim/launch.hpp"

using namespace tegula;

struct Kernel {
  struct Params {};
  struct SharedStorage {};
  static constexpr int threads = 32;
  void operator()(Params const&, SharedStorage&) {}
};
void run(sim::Machine& machine) { sim::launch<Kernel>(machine, {1, 1, 1}, {}); }
