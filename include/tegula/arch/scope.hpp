#pragma once

#include <cstdint>

#include "tegula/macros.hpp"

/// Scopes and orders of memory: PTX ISA, memory consistency model, "Scope" and "Operation Types".
namespace tegula {

/// For whom an instruction orders memory: the threads of the CTA, of the cluster (sm_90), of the
/// GPU, or of the whole system.
enum class Scope : std::uint8_t { cta, cluster, gpu, sys };

/// What an access or a wait orders: nothing but itself; what follows it in the thread; what
/// precedes it; or both.
enum class MemoryOrder : std::uint8_t { relaxed, acquire, release, acq_rel };

/// Whether what follows an access of the order comes after what it has seen; and whether those who
/// see it come after what precedes it.
TEGULA_HOST_DEVICE constexpr bool acquires(MemoryOrder order) {
  return order == MemoryOrder::acquire || order == MemoryOrder::acq_rel;
}
TEGULA_HOST_DEVICE constexpr bool releases(MemoryOrder order) {
  return order == MemoryOrder::release || order == MemoryOrder::acq_rel;
}

namespace detail {

/// Their texts in an instruction.
template <Scope S> struct ScopeText;
template <> struct ScopeText<Scope::cta> { static constexpr char text[] = ".cta"; };
template <> struct ScopeText<Scope::cluster> { static constexpr char text[] = ".cluster"; };
template <> struct ScopeText<Scope::gpu> { static constexpr char text[] = ".gpu"; };
template <> struct ScopeText<Scope::sys> { static constexpr char text[] = ".sys"; };

template <MemoryOrder O> struct OrderText;
template <> struct OrderText<MemoryOrder::relaxed> { static constexpr char text[] = ".relaxed"; };
template <> struct OrderText<MemoryOrder::acquire> { static constexpr char text[] = ".acquire"; };
template <> struct OrderText<MemoryOrder::release> { static constexpr char text[] = ".release"; };
template <> struct OrderText<MemoryOrder::acq_rel> { static constexpr char text[] = ".acq_rel"; };

}  // namespace detail

}  // namespace tegula
