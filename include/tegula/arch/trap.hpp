#pragma once

#include "tegula/arch/source_location.hpp"
#include "tegula/macros.hpp"
#if !TEGULA_GPU
#include "tegula/sim/hooks.hpp"
#endif

namespace tegula {

/// Ends the launch with an error: PTX ISA, trap.
TEGULA_DEVICE void trap([[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile("trap;");
#else
  sim::trap(where);
#endif
}

}  // namespace tegula
