#include "machine/current_cta.hpp"

#include <stdexcept>

namespace tegula::sim {

namespace {

constinit thread_local Cta* running = nullptr;

[[noreturn, gnu::noinline]] void outside_of_a_launch() {
  throw std::logic_error(
      "an instruction was executed outside of a launch on the simulated machine");
}

}  // namespace

// Fibers may go on on another of the host's threads in a later launch, so these are never
// inlined elsewhere.
Cta* running_cta() { return running; }
void set_running_cta(Cta* cta) { running = cta; }
Cta& this_cta() {
  if (running == nullptr) [[unlikely]]
    outside_of_a_launch();
  return *running;
}

}  // namespace tegula::sim
