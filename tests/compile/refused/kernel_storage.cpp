// Shared memory is not initialised.
// prints: a kernel's SharedStorage is trivial

#include "tegula/sim/launch.hpp"

using namespace tegula;

struct Kernel {
  struct Params {};
  struct SharedStorage {
    float x = 3;
  };
  static constexpr int threads = 32;
  void operator()(Params const&, SharedStorage&) const {}
};
void run(sim::Machine& machine) { sim::launch<Kernel>(machine, {1, 1, 1}, {}); }
