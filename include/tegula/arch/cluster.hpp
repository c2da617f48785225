#pragma once

#include <cstdint>

#include "tegula/arch/atomic_operation.hpp"
#include "tegula/arch/dim3.hpp"
#include "tegula/arch/memory_access.hpp"
#include "tegula/arch/shared.hpp"
#include "tegula/arch/source_location.hpp"
#include "tegula/macros.hpp"
#if !TEGULA_GPU
#include "tegula/sim/hooks.hpp"
#endif

/// Clusters of CTAs (sm_90): who am I in the cluster, the cluster's barrier, and the shared memory
/// of the cluster's other CTAs. A launch without clusters has clusters of one CTA.
namespace tegula {

/// Rank of this CTA in its cluster, x fastest: PTX ISA, %cluster_ctarank.
TEGULA_DEVICE int cluster_cta_rank() {
#if TEGULA_GPU
  std::uint32_t r;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
  return static_cast<int>(r);
#else
  return sim::cluster_cta_rank();
#endif
}

/// Number of CTAs in the cluster: PTX ISA, %cluster_nctarank.
TEGULA_DEVICE int cluster_cta_count() {
#if TEGULA_GPU
  std::uint32_t r;
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(r));
  return static_cast<int>(r);
#else
  return sim::cluster_cta_count();
#endif
}

/// Coordinate of this CTA in its cluster: PTX ISA, %cluster_ctaid.
TEGULA_DEVICE Dim3 cluster_cta_id() {
#if TEGULA_GPU
  std::uint32_t x;
  std::uint32_t y;
  std::uint32_t z;
  asm("mov.u32 %0, %%cluster_ctaid.x;" : "=r"(x));
  asm("mov.u32 %0, %%cluster_ctaid.y;" : "=r"(y));
  asm("mov.u32 %0, %%cluster_ctaid.z;" : "=r"(z));
  return {static_cast<int>(x), static_cast<int>(y), static_cast<int>(z)};
#else
  return sim::cluster_cta_id();
#endif
}

/// Extents of the cluster, in CTAs: PTX ISA, %cluster_nctaid.
TEGULA_DEVICE Dim3 cluster_dim() {
#if TEGULA_GPU
  std::uint32_t x;
  std::uint32_t y;
  std::uint32_t z;
  asm("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(x));
  asm("mov.u32 %0, %%cluster_nctaid.y;" : "=r"(y));
  asm("mov.u32 %0, %%cluster_nctaid.z;" : "=r"(z));
  return {static_cast<int>(x), static_cast<int>(y), static_cast<int>(z)};
#else
  return sim::cluster_dim();
#endif
}

/// The barrier of all threads of a cluster: PTX ISA, barrier.cluster, .aligned. Each thread
/// arrives, then waits, in turn; a thread that has exited counts as arrived. All lanes of a warp
/// execute one together.
namespace cluster {

/// Arrives without waiting; what the thread did to memory before is visible to those that
/// wait (.release).
TEGULA_DEVICE void arrive([[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#else
  sim::cluster_arrive(where);
#endif
}

/// As arrive, but promises nothing about memory (.relaxed).
TEGULA_DEVICE void arrive_relaxed(
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#else
  sim::cluster_arrive_relaxed(where);
#endif
}

/// Waits until all threads of the cluster have arrived (.acquire).
TEGULA_DEVICE void wait([[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#else
  sim::cluster_wait(where);
#endif
}

/// Arrives and waits.
TEGULA_DEVICE void sync([[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  arrive(where);
  wait(where);
}

}  // namespace cluster

/// The address, in the cluster's shared window, of what `local` is in the CTA of the given rank (0
/// to cluster_cta_count() - 1; its own is allowed): PTX ISA, mapa. A CTA's own shared addresses are
/// addresses of the cluster's window too.
TEGULA_DEVICE SharedAddr mapa(SharedAddr local, int cta_rank,
                              [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  SharedAddr r;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(r) : "r"(local), "r"(cta_rank));
  return r;
#else
  return sim::mapa(local, cta_rank, where);
#endif
}

/// Loads a V from the shared memory of a CTA of the cluster: PTX ISA, ld.shared::cluster. That CTA
/// has started (cluster::sync) and does not exit before the load.
template <MemoryValue V>
TEGULA_DEVICE V ld_shared_cluster(
    SharedAddr address, [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  if constexpr (sizeof(V) == 1) {
    std::uint16_t r;
    asm volatile("ld.shared::cluster.u8 %0, [%1];" : "=h"(r) : "r"(address));
    return bits_as<V>(static_cast<std::uint8_t>(r));
  } else if constexpr (sizeof(V) == 2) {
    std::uint16_t r;
    asm volatile("ld.shared::cluster.u16 %0, [%1];" : "=h"(r) : "r"(address));
    return bits_as<V>(r);
  } else if constexpr (sizeof(V) == 4) {
    RegisterBits<4> r;
    asm volatile("ld.shared::cluster.b32 %0, [%1];" : "=r"(r.word[0]) : "r"(address));
    return bits_as<V>(r);
  } else if constexpr (sizeof(V) == 8) {
    RegisterBits<8> r;
    asm volatile("ld.shared::cluster.v2.b32 {%0, %1}, [%2];"
                 : "=r"(r.word[0]), "=r"(r.word[1])
                 : "r"(address));
    return bits_as<V>(r);
  } else {
    RegisterBits<16> r;
    asm volatile("ld.shared::cluster.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r.word[0]), "=r"(r.word[1]), "=r"(r.word[2]), "=r"(r.word[3])
                 : "r"(address));
    return bits_as<V>(r);
  }
#else
  RegisterBits<sizeof(V)> r;
  sim::ld_shared_cluster(&r, address, sizeof(V), where);
  return bits_as<V>(r);
#endif
}

/// Stores a V to the shared memory of a CTA of the cluster: PTX ISA, st.shared::cluster. As for
/// ld_shared_cluster, that CTA is there.
template <MemoryValue V>
TEGULA_DEVICE void st_shared_cluster(
    SharedAddr address, V const& value,
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  auto const r = bits_as<RegisterBits<sizeof(V)>>(value);
#if TEGULA_GPU
  if constexpr (sizeof(V) == 1) {
    asm volatile("st.shared::cluster.u8 [%0], %1;" ::"r"(address),
                 "h"(static_cast<std::uint16_t>(r.byte)));
  } else if constexpr (sizeof(V) == 2) {
    asm volatile("st.shared::cluster.u16 [%0], %1;" ::"r"(address), "h"(r.half));
  } else if constexpr (sizeof(V) == 4) {
    asm volatile("st.shared::cluster.b32 [%0], %1;" ::"r"(address), "r"(r.word[0]));
  } else if constexpr (sizeof(V) == 8) {
    asm volatile("st.shared::cluster.v2.b32 [%0], {%1, %2};" ::"r"(address), "r"(r.word[0]),
                 "r"(r.word[1]));
  } else {
    asm volatile("st.shared::cluster.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(r.word[0]),
                 "r"(r.word[1]), "r"(r.word[2]), "r"(r.word[3]));
  }
#else
  sim::st_shared_cluster(address, &r, sizeof(V), where);
#endif
}

/// Stores a V of 4, 8 or 16 bytes to the shared memory of a CTA of the cluster without waiting for
/// it; once there, it completes sizeof(V) bytes of the mbarrier, which lies in the same CTA as
/// `remote`: PTX ISA, st.async. Both addresses are of the cluster's window.
template <MemoryValue V>
TEGULA_DEVICE void st_async(SharedAddr remote, V const& value, SharedAddr remote_mbarrier,
                            [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  static_assert(sizeof(V) == 4 || sizeof(V) == 8 || sizeof(V) == 16,
                "st.async stores 4, 8 or 16 bytes");
  auto const r = bits_as<RegisterBits<sizeof(V)>>(value);
#if TEGULA_GPU
  if constexpr (sizeof(V) == 4) {
    asm volatile(
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(
            remote),
        "r"(r.word[0]), "r"(remote_mbarrier)
        : "memory");
  } else if constexpr (sizeof(V) == 8) {
    asm volatile(
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%0], {%1, %2}, [%3];" ::
            "r"(remote),
        "r"(r.word[0]), "r"(r.word[1]), "r"(remote_mbarrier)
        : "memory");
  } else {
    asm volatile(
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, [%5];" ::
            "r"(remote),
        "r"(r.word[0]), "r"(r.word[1]), "r"(r.word[2]), "r"(r.word[3]), "r"(remote_mbarrier)
        : "memory");
  }
#else
  sim::st_async(remote, &r, sizeof(V), remote_mbarrier, where);
#endif
}

namespace detail {

template <AtomicOp Op, class T> struct RedAsyncFacts {
  static constexpr AtomicType type = atomic_type<Op, T>();
#if TEGULA_GPU
  /// ".add.u32"
  using Text = AssemblerCharacters<
      AssemblerText<16>().append(".").append(to_string(Op)).append(".").append(to_string(type))>;
#endif
};

template <AtomicOp Op, AtomicInteger T>
TEGULA_DEVICE void red_async(SharedAddr remote, T value, SharedAddr remote_mbarrier,
                             [[maybe_unused]] SourceLocation where) {
  using Facts = RedAsyncFacts<Op, T>;
#if TEGULA_GPU
  if constexpr (sizeof(T) == 4) {
    asm volatile(
        "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes%3 [%0], %1, [%2];" ::
            "r"(remote),
        "r"(bits_as<std::uint32_t>(value)), "r"(remote_mbarrier), "C"(Facts::Text::value)
        : "memory");
  } else {
    asm volatile(
        "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes%3 [%0], %1, [%2];" ::
            "r"(remote),
        "l"(bits_as<std::uint64_t>(value)), "r"(remote_mbarrier), "C"(Facts::Text::value)
        : "memory");
  }
#else
  sim::red_async(Op, Facts::type, remote, static_cast<std::uint64_t>(value), remote_mbarrier,
                 where);
#endif
}

}  // namespace detail

/// Adds a value to shared memory of a CTA of the cluster without waiting for it; once done, it
/// completes sizeof(T) bytes of the mbarrier, which lies in the same CTA as `remote`: PTX ISA,
/// red.async. Both addresses are of the cluster's window. Sums of s64 have the bits of those
/// of u64.
template <AtomicInteger T>
TEGULA_DEVICE void red_async_add(SharedAddr remote, T value, SharedAddr remote_mbarrier,
                                 SourceLocation where = SourceLocation::current()) {
  detail::red_async<AtomicOp::add>(remote, value, remote_mbarrier, where);
}
/// Likewise stores the smaller of the value and what is there.
template <AtomicInteger T>
requires(sizeof(T) == 4) TEGULA_DEVICE
    void red_async_min(SharedAddr remote, T value, SharedAddr remote_mbarrier,
                       SourceLocation where = SourceLocation::current()) {
  detail::red_async<AtomicOp::min>(remote, value, remote_mbarrier, where);
}
/// Likewise stores the larger of the value and what is there.
template <AtomicInteger T>
requires(sizeof(T) == 4) TEGULA_DEVICE
    void red_async_max(SharedAddr remote, T value, SharedAddr remote_mbarrier,
                       SourceLocation where = SourceLocation::current()) {
  detail::red_async<AtomicOp::max>(remote, value, remote_mbarrier, where);
}

}  // namespace tegula
