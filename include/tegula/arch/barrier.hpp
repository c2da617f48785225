#pragma once

#include "tegula/arch/source_location.hpp"
#include "tegula/macros.hpp"
#if !TEGULA_GPU
#include "tegula/sim/hooks.hpp"
#endif

/// Barriers of a CTA: PTX ISA, barrier.cta.sync.aligned and .arrive.aligned (bar.sync, bar.arrive).
/// There are sixteen; cta::sync uses number 0. All lanes of a warp execute one together.
namespace tegula::cta {

/// Waits for all threads of the CTA; their earlier accesses to shared and global memory are visible
/// to one another afterwards.
TEGULA_DEVICE void sync([[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  __syncthreads();
#else
  sim::bar_sync_all(where);
#endif
}

/// Arrives at barrier `id` (0 to 15) and waits until `threads` threads (a multiple of 32)
/// have arrived.
TEGULA_DEVICE void bar_sync(int id, int threads,
                            [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
#else
  sim::bar_sync(id, threads, where);
#endif
}

/// As bar_sync, without .aligned: the lanes of a warp may come to it on different lines. Each
/// waits for the warp's others that have not exited, then the warp arrives: PTX ISA,
/// barrier.cta.sync (sm_70).
TEGULA_DEVICE void barrier_sync(int id, int threads,
                                [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile("barrier.cta.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
#else
  sim::barrier_sync(id, threads, where);
#endif
}

/// Arrives at barrier `id` without waiting; `threads` counts those that arrive and those that wait.
TEGULA_DEVICE void bar_arrive(int id, int threads,
                              [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
#else
  sim::bar_arrive(id, threads, where);
#endif
}

}  // namespace tegula::cta
