#pragma once

#include <cstdint>
#include <type_traits>

#include "tegula/arch/memory_access.hpp"
#include "tegula/arch/scope.hpp"
#include "tegula/arch/shared.hpp"
#include "tegula/arch/source_location.hpp"
#if !TEGULA_GPU
#include "tegula/sim/hooks.hpp"
#endif

/// Loads and stores that are strong: they may meet those of other threads in the scope, and order
/// what comes before a store (.release) or after a load (.acquire) that sees it. PTX ISA, ld and st
/// with .relaxed, .acquire and .release (sm_70; the scope of the cluster: sm_90).
namespace tegula {

/// What one of them moves: a trivially copyable value of 4 or 8 bytes. Its address is a multiple of
/// its size.
template <class V>
concept OrderedValue = std::is_trivially_copyable_v<V> &&(sizeof(V) == 4 || sizeof(V) == 8);

#if TEGULA_GPU
namespace detail {

struct GlobalText {
  static constexpr char text[] = ".global";
};
struct SharedText {
  static constexpr char text[] = ".shared::cta";
};
struct SharedClusterText {
  static constexpr char text[] = ".shared::cluster";
};

template <class V, MemoryOrder O, Scope S> TEGULA_DEVICE V ld_ordered(void const* address) {
  if constexpr (sizeof(V) == 4) {
    std::uint32_t r;
    asm volatile("ld%2%3.global.b32 %0, [%1];"
                 : "=r"(r)
                 : "l"(address), "C"(OrderText<O>::text), "C"(ScopeText<S>::text)
                 : "memory");
    return bits_as<V>(r);
  } else {
    std::uint64_t r;
    asm volatile("ld%2%3.global.b64 %0, [%1];"
                 : "=l"(r)
                 : "l"(address), "C"(OrderText<O>::text), "C"(ScopeText<S>::text)
                 : "memory");
    return bits_as<V>(r);
  }
}

template <MemoryOrder O, Scope S, class V>
TEGULA_DEVICE void st_ordered(void* address, V const& value) {
  if constexpr (sizeof(V) == 4) {
    asm volatile("st%2%3.global.b32 [%0], %1;" ::"l"(address), "r"(bits_as<std::uint32_t>(value)),
                 "C"(OrderText<O>::text), "C"(ScopeText<S>::text)
                 : "memory");
  } else {
    asm volatile("st%2%3.global.b64 [%0], %1;" ::"l"(address), "l"(bits_as<std::uint64_t>(value)),
                 "C"(OrderText<O>::text), "C"(ScopeText<S>::text)
                 : "memory");
  }
}

/// Of shared memory of the CTA, or beyond the scope of the CTA, of the cluster.
template <Scope S>
using SharedTextOf = std::conditional_t<S == Scope::cta, SharedText, SharedClusterText>;

template <class V, MemoryOrder O, Scope S> TEGULA_DEVICE V ld_ordered(SharedAddr address) {
  if constexpr (sizeof(V) == 4) {
    std::uint32_t r;
    asm volatile("ld%2%3%4.b32 %0, [%1];"
                 : "=r"(r)
                 : "r"(address), "C"(OrderText<O>::text), "C"(ScopeText<S>::text),
                   "C"(SharedTextOf<S>::text)
                 : "memory");
    return bits_as<V>(r);
  } else {
    std::uint64_t r;
    asm volatile("ld%2%3%4.b64 %0, [%1];"
                 : "=l"(r)
                 : "r"(address), "C"(OrderText<O>::text), "C"(ScopeText<S>::text),
                   "C"(SharedTextOf<S>::text)
                 : "memory");
    return bits_as<V>(r);
  }
}

template <MemoryOrder O, Scope S, class V>
TEGULA_DEVICE void st_ordered(SharedAddr address, V const& value) {
  if constexpr (sizeof(V) == 4) {
    asm volatile("st%2%3%4.b32 [%0], %1;" ::"r"(address), "r"(bits_as<std::uint32_t>(value)),
                 "C"(OrderText<O>::text), "C"(ScopeText<S>::text), "C"(SharedTextOf<S>::text)
                 : "memory");
  } else {
    asm volatile("st%2%3%4.b64 [%0], %1;" ::"r"(address), "l"(bits_as<std::uint64_t>(value)),
                 "C"(OrderText<O>::text), "C"(ScopeText<S>::text), "C"(SharedTextOf<S>::text)
                 : "memory");
  }
}

}  // namespace detail
#endif

/// Loads a V from global memory: ld.acquire. What the thread that stored the value did before its
/// release is visible to this thread afterwards, where both scopes hold both threads.
template <OrderedValue V, Scope S>
TEGULA_DEVICE V ld_global_acquire(
    void const* address, [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  return detail::ld_ordered<V, MemoryOrder::acquire, S>(address);
#else
  V value;
  sim::ld_global_ordered(&value, address, sizeof(V), MemoryOrder::acquire, S, where);
  return value;
#endif
}

/// Likewise, and orders nothing else: ld.relaxed. A fence_acq_rel of the scope that
/// follows acquires.
template <OrderedValue V, Scope S>
TEGULA_DEVICE V ld_global_relaxed(
    void const* address, [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  return detail::ld_ordered<V, MemoryOrder::relaxed, S>(address);
#else
  V value;
  sim::ld_global_ordered(&value, address, sizeof(V), MemoryOrder::relaxed, S, where);
  return value;
#endif
}

/// Stores a V to global memory: st.release. What this thread did to memory before, and what it has
/// acquired, is visible to a thread that loads the value by ld.acquire.
template <Scope S, OrderedValue V>
TEGULA_DEVICE void st_global_release(
    void* address, V const& value,
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  detail::st_ordered<MemoryOrder::release, S>(address, value);
#else
  sim::st_global_ordered(address, &value, sizeof(V), MemoryOrder::release, S, where);
#endif
}

/// Likewise, and orders nothing else: st.relaxed. A fence_acq_rel of the scope before it releases.
template <Scope S, OrderedValue V>
TEGULA_DEVICE void st_global_relaxed(
    void* address, V const& value,
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  detail::st_ordered<MemoryOrder::relaxed, S>(address, value);
#else
  sim::st_global_ordered(address, &value, sizeof(V), MemoryOrder::relaxed, S, where);
#endif
}

/// The same four of shared memory: at the scope of the CTA its own (.shared::cta), at a wider one
/// that of any CTA of the cluster, whose address is mapa's (.shared::cluster).
template <OrderedValue V, Scope S = Scope::cta>
TEGULA_DEVICE V ld_shared_acquire(
    SharedAddr address, [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  return detail::ld_ordered<V, MemoryOrder::acquire, S>(address);
#else
  V value;
  sim::ld_shared_ordered(&value, address, sizeof(V), MemoryOrder::acquire, S, where);
  return value;
#endif
}
template <OrderedValue V, Scope S = Scope::cta>
TEGULA_DEVICE V ld_shared_relaxed(
    SharedAddr address, [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  return detail::ld_ordered<V, MemoryOrder::relaxed, S>(address);
#else
  V value;
  sim::ld_shared_ordered(&value, address, sizeof(V), MemoryOrder::relaxed, S, where);
  return value;
#endif
}
template <Scope S = Scope::cta, OrderedValue V>
TEGULA_DEVICE void st_shared_release(
    SharedAddr address, V const& value,
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  detail::st_ordered<MemoryOrder::release, S>(address, value);
#else
  sim::st_shared_ordered(address, &value, sizeof(V), MemoryOrder::release, S, where);
#endif
}
template <Scope S = Scope::cta, OrderedValue V>
TEGULA_DEVICE void st_shared_relaxed(
    SharedAddr address, V const& value,
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  detail::st_ordered<MemoryOrder::relaxed, S>(address, value);
#else
  sim::st_shared_ordered(address, &value, sizeof(V), MemoryOrder::relaxed, S, where);
#endif
}

}  // namespace tegula
