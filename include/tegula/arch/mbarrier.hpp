#pragma once

#include <cstdint>

#include "tegula/arch/scope.hpp"
#include "tegula/arch/shared.hpp"
#include "tegula/arch/source_location.hpp"
#include "tegula/macros.hpp"
#if !TEGULA_GPU
#include "tegula/sim/hooks.hpp"
#endif

/// Barriers in shared memory: PTX ISA, mbarrier (sm_90 as used here). A barrier goes through
/// phases: phase 0, 1, 2, ... A phase completes when as many threads as it counts have arrived and
/// all bytes that it expects have come; the next phase then counts the same number anew. The parity
/// of phase n is n % 2.
namespace tegula {

/// A barrier's 8 bytes in SharedStorage; only the functions here touch them.
struct alignas(8) Mbarrier {
  std::uint64_t state;
};

/// Starts phase 0, which counts `count` arrivals (1 to 2^20 - 1). One thread does it;
/// fence_mbarrier_init and a barrier (of the cluster, if its other CTAs use the mbarrier) make it
/// known to the others.
TEGULA_DEVICE void mbarrier_init(
    SharedAddr mbarrier, int count,
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(mbarrier), "r"(count) : "memory");
#else
  sim::mbarrier_init(mbarrier, count, where);
#endif
}

/// Ends a barrier's life, so that its bytes can be used otherwise.
TEGULA_DEVICE void mbarrier_inval(
    SharedAddr mbarrier, [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(mbarrier) : "memory");
#else
  sim::mbarrier_inval(mbarrier, where);
#endif
}

/// Makes this thread's mbarrier_init known to the cluster's other threads and to
/// asynchronous copies, before the arrival (cluster::arrive, which may be relaxed) that
/// follows: PTX ISA, fence.mbarrier_init.
TEGULA_DEVICE void fence_mbarrier_init(
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#else
  sim::fence_mbarrier_init(where);
#endif
}

/// Arrives at a barrier of this CTA, once; what the thread did to memory before is visible to the
/// CTA's threads that see the phase complete.
TEGULA_DEVICE void mbarrier_arrive(
    SharedAddr mbarrier, [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(mbarrier) : "memory");
#else
  sim::mbarrier_arrive(mbarrier, 1, where);
#endif
}
/// Likewise `count` times (1 to what the phase still lacks).
TEGULA_DEVICE void mbarrier_arrive(
    SharedAddr mbarrier, int count,
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(mbarrier),
               "r"(count)
               : "memory");
#else
  sim::mbarrier_arrive(mbarrier, count, where);
#endif
}

/// Arrives, once, at a barrier of any CTA of the cluster (its address is mapa's) to say that this
/// thread has finished reading: its earlier loads, and wgmma's that it has waited for, are done.
/// What it *wrote* for another CTA's threads needs mbarrier_arrive_cluster_release. (Release at
/// the scope of the CTA; the scope of the cluster costs a memory barrier of the whole GPU for
/// each arrival.)
TEGULA_DEVICE void mbarrier_arrive_cluster(
    SharedAddr remote, [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile("mbarrier.arrive.release.cta.shared::cluster.b64 _, [%0];" ::"r"(remote) : "memory");
#else
  sim::mbarrier_arrive_cluster(remote, 1, where);
#endif
}
/// Likewise `count` times.
TEGULA_DEVICE void mbarrier_arrive_cluster(
    SharedAddr remote, int count,
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile("mbarrier.arrive.release.cta.shared::cluster.b64 _, [%0], %1;" ::"r"(remote),
               "r"(count)
               : "memory");
#else
  sim::mbarrier_arrive_cluster(remote, count, where);
#endif
}

/// As mbarrier_arrive_cluster, and what the thread did to memory before, by st_shared_cluster
/// too, is visible to the cluster's threads that see the phase complete: release at the scope of
/// the cluster.
TEGULA_DEVICE void mbarrier_arrive_cluster_release(
    SharedAddr remote, [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(remote)
               : "memory");
#else
  sim::mbarrier_arrive_cluster_release(remote, 1, where);
#endif
}
/// Likewise `count` times.
TEGULA_DEVICE void mbarrier_arrive_cluster_release(
    SharedAddr remote, int count,
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0], %1;" ::"r"(remote),
               "r"(count)
               : "memory");
#else
  sim::mbarrier_arrive_cluster_release(remote, count, where);
#endif
}

/// Adds `bytes` to those that the current phase expects, then arrives, once. A phase expects at
/// most 2^20 - 1 bytes.
TEGULA_DEVICE void mbarrier_arrive_expect_tx(
    SharedAddr mbarrier, int bytes,
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(mbarrier),
               "r"(bytes)
               : "memory");
#else
  sim::mbarrier_arrive_expect_tx(mbarrier, bytes, where);
#endif
}

/// Adds `bytes` to those that the current phase expects, without arriving.
TEGULA_DEVICE void mbarrier_expect_tx(
    SharedAddr mbarrier, int bytes,
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(mbarrier),
               "r"(bytes)
               : "memory");
#else
  sim::mbarrier_expect_tx(mbarrier, bytes, where);
#endif
}

/// Says that `bytes` of those that the current phase expects have come, as an asynchronous
/// copy does.
TEGULA_DEVICE void mbarrier_complete_tx(
    SharedAddr mbarrier, int bytes,
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(mbarrier),
               "r"(bytes)
               : "memory");
#else
  sim::mbarrier_complete_tx(mbarrier, bytes, where);
#endif
}

/// Arrives, once, when this thread's cp.async so far have landed, without waiting for them: what
/// they wrote is visible to the CTA's threads that see the phase complete. The count of the phase's
/// arrivals is one more from now on, so that init need not count it: PTX ISA,
/// cp.async.mbarrier.arrive (sm_80).
TEGULA_DEVICE void cp_async_mbarrier_arrive(
    SharedAddr mbarrier, [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile("cp.async.mbarrier.arrive.shared::cta.b64 [%0];" ::"r"(mbarrier) : "memory");
#else
  sim::cp_async_mbarrier_arrive(mbarrier, where);
#endif
}

/// Likewise, and init has counted the arrival (.noinc).
TEGULA_DEVICE void cp_async_mbarrier_arrive_noinc(
    SharedAddr mbarrier, [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(mbarrier) : "memory");
#else
  sim::cp_async_mbarrier_arrive_noinc(mbarrier, where);
#endif
}

/// What a wait can order: as .acquire what the thread does after it, as .relaxed nothing; for
/// arrivals of the CTA's threads, or of all of the cluster's.
template <MemoryOrder O, Scope S>
concept WaitOrder = (O == MemoryOrder::acquire || O == MemoryOrder::relaxed) &&
                    (S == Scope::cta || S == Scope::cluster);

/// Whether the phase of the given parity (0 or 1) is complete, where it is the current phase or the
/// one before; does not wait.
template <MemoryOrder O = MemoryOrder::acquire, Scope S = Scope::cta>
requires WaitOrder<O, S> TEGULA_DEVICE bool mbarrier_test_wait_parity(
    SharedAddr mbarrier, int parity,
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  std::uint32_t r;
  asm volatile(
      "{ .reg .pred p; mbarrier.test_wait.parity%3%4.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
      : "=r"(r)
      : "r"(mbarrier), "r"(parity), "C"(detail::OrderText<O>::text), "C"(detail::ScopeText<S>::text)
      : "memory");
  return r != 0;
#else
  return sim::mbarrier_test_wait_parity(mbarrier, parity, O, S, where);
#endif
}

/// As mbarrier_test_wait_parity, after having waited for a time that the hardware sets.
template <MemoryOrder O = MemoryOrder::acquire, Scope S = Scope::cta>
requires WaitOrder<O, S> TEGULA_DEVICE bool mbarrier_try_wait_parity(
    SharedAddr mbarrier, int parity,
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  std::uint32_t r;
  asm volatile(
      "{ .reg .pred p; mbarrier.try_wait.parity%3%4.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
      : "=r"(r)
      : "r"(mbarrier), "r"(parity), "C"(detail::OrderText<O>::text), "C"(detail::ScopeText<S>::text)
      : "memory");
  return r != 0;
#else
  return sim::mbarrier_try_wait_parity(mbarrier, parity, O, S, where);
#endif
}

namespace detail {
/// For how long a thread that waits is at most suspended before it asks again: 10 ms, much longer
/// than any wait. (Without it the hardware sets a time: decision 181.)
inline constexpr int kSuspendNanoseconds = 10'000'000;
}  // namespace detail

/// Waits until the phase of the given parity (0 or 1) is complete, where it is the current phase or
/// the one before. (Of a barrier just initialized, the phase before counts as complete: waiting for
/// parity 1 returns at once.) As the two above do, it acquires at the scope of the CTA unless told
/// otherwise: what threads of *other* CTAs stored before mbarrier_arrive_cluster_release is seen
/// after a wait at the scope of the cluster, or a fence_acq_rel of that scope that follows.
template <MemoryOrder O = MemoryOrder::acquire, Scope S = Scope::cta>
requires WaitOrder<O, S> TEGULA_DEVICE void mbarrier_wait_parity(
    SharedAddr mbarrier, int parity,
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "wait:\n"
      "mbarrier.try_wait.parity%2%3.shared::cta.b64 p, [%0], %1, %4;\n"
      "@!p bra wait;\n"
      "}"
      :
      : "r"(mbarrier), "r"(parity), "C"(detail::OrderText<O>::text),
        "C"(detail::ScopeText<S>::text), "n"(detail::kSuspendNanoseconds)
      : "memory");
#else
  sim::mbarrier_wait_parity(mbarrier, parity, O, S, where);
#endif
}

}  // namespace tegula
