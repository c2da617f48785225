#pragma once

#include <cstdint>

#include "tegula/arch/source_location.hpp"
#include "tegula/macros.hpp"
#if !TEGULA_GPU
#include "tegula/sim/hooks.hpp"
#endif

/// Barriers of a CTA: PTX ISA, barrier.cta.sync.aligned, .arrive.aligned and .red.aligned
/// (bar.sync, bar.arrive, bar.red). There are sixteen; cta::sync uses number 0. All lanes of a warp
/// execute one together.
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

// Barriers that reduce. Each waits as sync or bar_sync does, orders what they order, and gives
// every thread what the predicates of all threads at the barrier come to. All of them execute the
// same reduction: a barrier that one thread comes to by bar_red_and, and another by bar_red_or,
// bar_sync or bar_arrive, does not work (PTX ISA: "unpredictable"), and is found.

namespace detail {

#if TEGULA_GPU
enum class BarrierReduction : std::uint8_t { popc, all, any };

template <BarrierReduction Op, bool Aligned>
TEGULA_DEVICE int bar_red(int id, int threads, bool predicate) {
#define TEGULA_BAR_RED(INSTRUCTION, OP, TYPE, RESULT, COPY)                                       \
  asm volatile("{ .reg .pred p, q; setp.ne.u32 p, %3, 0; " INSTRUCTION ".red." OP TYPE " " RESULT \
               ", %1, %2, p; " COPY "}"                                                           \
               : "=r"(r)                                                                          \
               : "r"(id), "r"(threads), "r"(static_cast<std::uint32_t>(predicate))                \
               : "memory")
#define TEGULA_BAR_RED_OF(OP, TYPE, RESULT, COPY)          \
  if constexpr (Aligned) {                                 \
    TEGULA_BAR_RED("bar", OP, TYPE, RESULT, COPY);         \
  } else {                                                 \
    TEGULA_BAR_RED("barrier.cta", OP, TYPE, RESULT, COPY); \
  }
  int r;
  if constexpr (Op == BarrierReduction::popc) {
    TEGULA_BAR_RED_OF("popc", ".u32", "%0", "")
  } else if constexpr (Op == BarrierReduction::all) {
    TEGULA_BAR_RED_OF("and", ".pred", "q", "selp.u32 %0, 1, 0, q; ")
  } else {
    TEGULA_BAR_RED_OF("or", ".pred", "q", "selp.u32 %0, 1, 0, q; ")
  }
#undef TEGULA_BAR_RED_OF
#undef TEGULA_BAR_RED
  return r;
}
#else
using sim::BarrierReduction;
#endif

template <BarrierReduction Op, bool Aligned>
TEGULA_DEVICE int bar_red(int id, int threads, bool predicate,
                          [[maybe_unused]] SourceLocation where) {
#if TEGULA_GPU
  return bar_red<Op, Aligned>(id, threads, predicate);
#else
  return sim::bar_red(Op, id, threads, predicate, Aligned, where);
#endif
}

}  // namespace detail

/// As sync; returns how many threads of the CTA have a true predicate. CUDA: __syncthreads_count.
TEGULA_DEVICE int sync_count(bool predicate,
                             [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  return __syncthreads_count(predicate);
#else
  return sim::bar_red_all(sim::BarrierReduction::popc, predicate, where);
#endif
}

/// As sync; returns whether every thread of the CTA has a true predicate. CUDA: __syncthreads_and.
TEGULA_DEVICE bool sync_and(bool predicate,
                            [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  return __syncthreads_and(predicate) != 0;
#else
  return sim::bar_red_all(sim::BarrierReduction::all, predicate, where) != 0;
#endif
}

/// As sync; returns whether some thread of the CTA has a true predicate. CUDA: __syncthreads_or.
TEGULA_DEVICE bool sync_or(bool predicate,
                           [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  return __syncthreads_or(predicate) != 0;
#else
  return sim::bar_red_all(sim::BarrierReduction::any, predicate, where) != 0;
#endif
}

/// As bar_sync; returns how many of the barrier's threads have a true predicate: bar.red.popc.
TEGULA_DEVICE int bar_red_popc(int id, int threads, bool predicate,
                               SourceLocation where = SourceLocation::current()) {
  return detail::bar_red<detail::BarrierReduction::popc, true>(id, threads, predicate, where);
}

/// As bar_sync; returns whether every one of the barrier's threads has a true predicate:
/// bar.red.and.
TEGULA_DEVICE bool bar_red_and(int id, int threads, bool predicate,
                               SourceLocation where = SourceLocation::current()) {
  return detail::bar_red<detail::BarrierReduction::all, true>(id, threads, predicate, where) != 0;
}

/// As bar_sync; returns whether some of the barrier's threads has a true predicate: bar.red.or.
TEGULA_DEVICE bool bar_red_or(int id, int threads, bool predicate,
                              SourceLocation where = SourceLocation::current()) {
  return detail::bar_red<detail::BarrierReduction::any, true>(id, threads, predicate, where) != 0;
}

/// As bar_red_popc, without .aligned, as barrier_sync: barrier.cta.red.popc.
TEGULA_DEVICE int barrier_red_popc(int id, int threads, bool predicate,
                                   SourceLocation where = SourceLocation::current()) {
  return detail::bar_red<detail::BarrierReduction::popc, false>(id, threads, predicate, where);
}

/// As bar_red_and, without .aligned: barrier.cta.red.and.
TEGULA_DEVICE bool barrier_red_and(int id, int threads, bool predicate,
                                   SourceLocation where = SourceLocation::current()) {
  return detail::bar_red<detail::BarrierReduction::all, false>(id, threads, predicate, where) != 0;
}

/// As bar_red_or, without .aligned: barrier.cta.red.or.
TEGULA_DEVICE bool barrier_red_or(int id, int threads, bool predicate,
                                  SourceLocation where = SourceLocation::current()) {
  return detail::bar_red<detail::BarrierReduction::any, false>(id, threads, predicate, where) != 0;
}

}  // namespace tegula::cta
