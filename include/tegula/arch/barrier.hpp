#pragma once

#include "tegula/arch/mutant.hpp"
#include "tegula/arch/source_location.hpp"
#include "tegula/macros.hpp"
#if !TEGULA_GPU
#include "tegula/sim/hooks.hpp"
#endif

/// Barriers of a CTA: PTX ISA, barrier.cta.sync.aligned and .arrive.aligned (bar.sync, bar.arrive). There are
/// sixteen; cta::sync uses number 0. All lanes of a warp execute one together.
namespace tegula::cta {

namespace detail {
/// How a barrier's number of threads can be mutated: by a warp, less only where another is left.
TEGULA_HOST_DEVICE constexpr Mutation admitted_counts(int threads) {
  return threads > 32 ? Mutation::less | Mutation::more : Mutation::more;
}
}  // namespace detail

/// Waits for all threads of the CTA; their earlier accesses to shared and global memory are visible to one
/// another afterwards.
TEGULA_DEVICE void sync(SourceLocation where = SourceLocation::current()) {
  Mutation const m =
      mutation(where, Operation::bar_sync, Mutation::removed | Mutation::weakened | Mutation::delayed);
  if (m == Mutation::removed) return;
#if TEGULA_GPU
  if (m == Mutation::weakened) {
    __syncwarp();
  } else {
    __syncthreads();
  }
#else
  if (m == Mutation::weakened) return sim::warp_sync(0xffffffffu, where);
  execute(m, [=] { sim::bar_sync_all(where); });
#endif
}

/// Arrives at barrier `id` (0 to 15) and waits until `threads` threads (a multiple of 32) have arrived.
TEGULA_DEVICE void bar_sync(int id, int threads, SourceLocation where = SourceLocation::current()) {
  Mutation const m =
      mutation(where, Operation::bar_sync,
               Mutation::removed | Mutation::weakened | Mutation::delayed | detail::admitted_counts(threads));
  if (m == Mutation::removed) return;
  threads = counted(threads, m, 32);
#if TEGULA_GPU
  if (m == Mutation::weakened) return __syncwarp();
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
#else
  if (m == Mutation::weakened) return sim::warp_sync(0xffffffffu, where);
  execute(m, [=] { sim::bar_sync(id, threads, where); });
#endif
}

/// Arrives at barrier `id` without waiting; `threads` counts those that arrive and those that wait.
TEGULA_DEVICE void bar_arrive(int id, int threads, SourceLocation where = SourceLocation::current()) {
  Mutation const m = mutation(where, Operation::bar_arrive,
                              Mutation::removed | Mutation::delayed | detail::admitted_counts(threads));
  if (m == Mutation::removed) return;
  threads = counted(threads, m, 32);
#if TEGULA_GPU
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
#else
  execute(m, [=] { sim::bar_arrive(id, threads, where); });
#endif
}

}  // namespace tegula::cta
