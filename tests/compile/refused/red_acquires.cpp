// A red with an order that it cannot have.
// prints: red has no result, and so acquires nothing: its order is relaxed or release

#include "tegula/arch/reduction.hpp"

TEGULA_DEVICE void count(std::uint32_t* counter) {
  tegula::red_add<tegula::Scope::gpu, tegula::MemoryOrder::acq_rel>(counter, 1u);
}
