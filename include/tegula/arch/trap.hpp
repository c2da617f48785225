#pragma once

#include "tegula/arch/where.hpp"
#include "tegula/macros.hpp"
#if !TEGULA_GPU
#include "tegula/sim/hooks.hpp"
#endif

namespace tegula {

/// Ends the launch with an error: PTX ISA, trap.
TEGULA_DEVICE void trap([[maybe_unused]] Where where = Where::here()) {
#if TEGULA_GPU
  asm volatile("trap;");
#else
  sim::trap(where);
#endif
}

}  // namespace tegula
