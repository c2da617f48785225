#pragma once

#include <cstdint>

/// Scopes and orders of memory: PTX ISA, memory consistency model, "Scope" and "Operation Types".
namespace tegula {

/// For whom an instruction orders memory: the threads of the CTA, of the cluster (sm_90), of the
/// GPU, or of the whole system.
enum class Scope : std::uint8_t { cta, cluster, gpu, sys };

/// What an access or a wait orders: nothing but itself; what follows it in the thread; or what
/// precedes it.
enum class MemoryOrder : std::uint8_t { relaxed, acquire, release };

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

}  // namespace detail

}  // namespace tegula
