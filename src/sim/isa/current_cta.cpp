#include "isa/current_cta.hpp"

#include "mutation/mutation.hpp"

namespace tegula::sim {

Cta& current_cta() {
  if (mutating.load(std::memory_order_relaxed) != 0) [[unlikely]]
    execute_delayed();
  return this_cta();
}

}  // namespace tegula::sim
