#pragma once

#include <cstdint>
#include <type_traits>

#include "tegula/arch/memory_access.hpp"
#include "tegula/arch/source_location.hpp"
#if !TEGULA_GPU
#include "tegula/sim/hooks.hpp"
#endif

/// Atomics on global memory, relaxed, at GPU scope: PTX ISA, atom and red. f32 addition rounds to nearest
/// even and keeps subnormals; the order in which threads add is the machine's. On the simulated machine CTAs
/// take their turn in the order of their indices, so that a result does not depend on how many of the host's
/// cores run it.
namespace tegula {

template <class T>
concept AtomicValue =
    std::is_same_v<T, float> || std::is_same_v<T, std::int32_t> || std::is_same_v<T, std::uint32_t>;

/// Adds value to *address; returns what was there before.
template <AtomicValue T>
TEGULA_DEVICE T atom_add(T* address, T value,
                         [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  T old;
  if constexpr (std::is_same_v<T, float>) {
    asm volatile("atom.relaxed.gpu.global.add.f32 %0, [%1], %2;"
                 : "=f"(old)
                 : "l"(address), "f"(value)
                 : "memory");
  } else {
    asm volatile("atom.relaxed.gpu.global.add.u32 %0, [%1], %2;"
                 : "=r"(old)
                 : "l"(address), "r"(value)
                 : "memory");
  }
  return old;
#else
  constexpr auto op = std::is_same_v<T, float> ? sim::AtomicOp::add_f32 : sim::AtomicOp::add_u32;
  return bits_as<T>(sim::atomic(op, address, bits_as<std::uint32_t>(value), 0, where));
#endif
}

/// Adds value to *address, with no result.
template <AtomicValue T>
TEGULA_DEVICE void red_add(T* address, T value,
                           [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  if constexpr (std::is_same_v<T, float>) {
    asm volatile("red.relaxed.gpu.global.add.f32 [%0], %1;" ::"l"(address), "f"(value) : "memory");
  } else {
    asm volatile("red.relaxed.gpu.global.add.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
  }
#else
  atom_add(address, value, where);
#endif
}

/// Stores the larger of value and *address; returns what was there before.
template <AtomicValue T>
requires(!std::is_same_v<T, float>) TEGULA_DEVICE T
    atom_max(T* address, T value, [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  T old;
  if constexpr (std::is_signed_v<T>) {
    asm volatile("atom.relaxed.gpu.global.max.s32 %0, [%1], %2;"
                 : "=r"(old)
                 : "l"(address), "r"(value)
                 : "memory");
  } else {
    asm volatile("atom.relaxed.gpu.global.max.u32 %0, [%1], %2;"
                 : "=r"(old)
                 : "l"(address), "r"(value)
                 : "memory");
  }
  return old;
#else
  constexpr auto op = std::is_signed_v<T> ? sim::AtomicOp::max_s32 : sim::AtomicOp::max_u32;
  return bits_as<T>(sim::atomic(op, address, bits_as<std::uint32_t>(value), 0, where));
#endif
}

/// Stores value; returns what was there before.
template <AtomicValue T>
TEGULA_DEVICE T atom_exch(T* address, T value,
                          [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  std::uint32_t old;
  asm volatile("atom.relaxed.gpu.global.exch.b32 %0, [%1], %2;"
               : "=r"(old)
               : "l"(address), "r"(bits_as<std::uint32_t>(value))
               : "memory");
  return bits_as<T>(old);
#else
  return bits_as<T>(sim::atomic(sim::AtomicOp::exchange, address, bits_as<std::uint32_t>(value), 0, where));
#endif
}

/// Stores value where *address has the bits of expected; returns what was there before.
template <AtomicValue T>
TEGULA_DEVICE T atom_cas(T* address, T expected, T value,
                         [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  std::uint32_t old;
  asm volatile("atom.relaxed.gpu.global.cas.b32 %0, [%1], %2, %3;"
               : "=r"(old)
               : "l"(address), "r"(bits_as<std::uint32_t>(expected)), "r"(bits_as<std::uint32_t>(value))
               : "memory");
  return bits_as<T>(old);
#else
  return bits_as<T>(sim::atomic(sim::AtomicOp::compare_and_swap, address, bits_as<std::uint32_t>(value),
                                bits_as<std::uint32_t>(expected), where));
#endif
}

}  // namespace tegula
