#include "machine/cluster.hpp"
#include "machine/current_cta.hpp"
#include "tegula/sim/hooks.hpp"

/// What the special-function units compute is in arithmetic/. Here is what it takes.
namespace tegula::sim {

void special_function(bool exponential) {
  Cta* const cta = running_cta();
  if (cta == nullptr || !cta->cluster().timed()) return;
  cta->cluster().wait_for_clock();
  cta->observers().special_function(*cta, exponential);
}

}  // namespace tegula::sim
