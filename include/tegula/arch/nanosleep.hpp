#pragma once

#include "tegula/arch/source_location.hpp"
#include "tegula/macros.hpp"
#if !TEGULA_GPU
#include "tegula/sim/hooks.hpp"
#endif

namespace tegula {

/// Suspends the thread for about so many nanoseconds, from none to twice as many, at most
/// 1,000,000: PTX ISA, nanosleep (sm_70). It orders nothing.
TEGULA_DEVICE void nanosleep(int nanoseconds,
                             [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile("nanosleep.u32 %0;" ::"r"(nanoseconds));
#else
  sim::nanosleep(nanoseconds, where);
#endif
}

}  // namespace tegula
