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

/// Atomics, relaxed: PTX ISA, atom and red. On global memory they have the scope of the GPU. On
/// shared memory they have that of the CTA, whose own it is; or that of the cluster (sm_90), where
/// the address is mapa's. Floating-point addition rounds to nearest even and keeps subnormals; the
/// order in which threads add is the machine's. On the simulated machine CTAs take their turn in
/// the order of their indices, so that a result does not depend on how many of the host's cores
/// run it.
namespace tegula {

template <class T>
concept AtomicInteger = std::is_same_v<T, std::int32_t> || std::is_same_v<T, std::uint32_t> ||
    std::is_same_v<T, std::int64_t> || std::is_same_v<T, std::uint64_t>;
template <class T>
concept AtomicValue = AtomicInteger<T> || std::is_same_v<T, float> || std::is_same_v<T, double>;

namespace detail {

/// A value's bits in a register.
template <AtomicValue T>
using AtomicBits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

#if TEGULA_GPU

/// The kinds of values that an operation names: sums are of unsigned integers, exchanges of bits.
struct UnsignedText {
  static constexpr char text[] = ".u";
};
struct SignedText {
  static constexpr char text[] = ".s";
};
struct FloatText {
  static constexpr char text[] = ".f";
};
struct BitsText {
  static constexpr char text[] = ".b";
};

template <AtomicValue T> struct AddText {
  static constexpr char text[] = ".add";
  using Kind = std::conditional_t<std::is_floating_point_v<T>, FloatText, UnsignedText>;
};
template <AtomicInteger T> struct MinText {
  static constexpr char text[] = ".min";
  using Kind = std::conditional_t<std::is_signed_v<T>, SignedText, UnsignedText>;
};
template <AtomicInteger T> struct MaxText {
  static constexpr char text[] = ".max";
  using Kind = std::conditional_t<std::is_signed_v<T>, SignedText, UnsignedText>;
};
template <AtomicValue T> struct ExchText {
  static constexpr char text[] = ".exch";
  using Kind = BitsText;
};

/// Scope and memory, by how the address is given.
struct GlobalAtomicText {
  static constexpr char text[] = ".gpu.global";
};
template <Scope S> struct SharedAtomicText { static constexpr char text[] = ".cta.shared::cta"; };
template <> struct SharedAtomicText<Scope::cluster> {
  static constexpr char text[] = ".cluster.shared::cluster";
};

template <class Memory, class Op, AtomicValue T, class Address>
TEGULA_DEVICE T atom(Address address, T value) {
  AtomicBits<T> old;
  if constexpr (sizeof(T) == 4 && sizeof(Address) == 8) {
    asm volatile("atom.relaxed%3%4%5%6 %0, [%1], %2;"
                 : "=r"(old)
                 : "l"(address), "r"(bits_as<AtomicBits<T>>(value)), "C"(Memory::text),
                   "C"(Op::text), "C"(Op::Kind::text), "n"(32)
                 : "memory");
  } else if constexpr (sizeof(Address) == 8) {
    asm volatile("atom.relaxed%3%4%5%6 %0, [%1], %2;"
                 : "=l"(old)
                 : "l"(address), "l"(bits_as<AtomicBits<T>>(value)), "C"(Memory::text),
                   "C"(Op::text), "C"(Op::Kind::text), "n"(64)
                 : "memory");
  } else if constexpr (sizeof(T) == 4) {
    asm volatile("atom.relaxed%3%4%5%6 %0, [%1], %2;"
                 : "=r"(old)
                 : "r"(address), "r"(bits_as<AtomicBits<T>>(value)), "C"(Memory::text),
                   "C"(Op::text), "C"(Op::Kind::text), "n"(32)
                 : "memory");
  } else {
    asm volatile("atom.relaxed%3%4%5%6 %0, [%1], %2;"
                 : "=l"(old)
                 : "r"(address), "l"(bits_as<AtomicBits<T>>(value)), "C"(Memory::text),
                   "C"(Op::text), "C"(Op::Kind::text), "n"(64)
                 : "memory");
  }
  return bits_as<T>(old);
}

template <class Memory, AtomicValue T, class Address>
TEGULA_DEVICE T atom_cas(Address address, T expected, T value) {
  AtomicBits<T> old;
  auto const e = bits_as<AtomicBits<T>>(expected), v = bits_as<AtomicBits<T>>(value);
  if constexpr (sizeof(T) == 4 && sizeof(Address) == 8) {
    asm volatile("atom.relaxed%4.cas.b32 %0, [%1], %2, %3;"
                 : "=r"(old)
                 : "l"(address), "r"(e), "r"(v), "C"(Memory::text)
                 : "memory");
  } else if constexpr (sizeof(Address) == 8) {
    asm volatile("atom.relaxed%4.cas.b64 %0, [%1], %2, %3;"
                 : "=l"(old)
                 : "l"(address), "l"(e), "l"(v), "C"(Memory::text)
                 : "memory");
  } else if constexpr (sizeof(T) == 4) {
    asm volatile("atom.relaxed%4.cas.b32 %0, [%1], %2, %3;"
                 : "=r"(old)
                 : "r"(address), "r"(e), "r"(v), "C"(Memory::text)
                 : "memory");
  } else {
    asm volatile("atom.relaxed%4.cas.b64 %0, [%1], %2, %3;"
                 : "=l"(old)
                 : "r"(address), "l"(e), "l"(v), "C"(Memory::text)
                 : "memory");
  }
  return bits_as<T>(old);
}

template <class Memory, AtomicValue T, class Address>
TEGULA_DEVICE void red_add(Address address, T value) {
  using Op = AddText<T>;
  if constexpr (sizeof(T) == 4 && sizeof(Address) == 8) {
    asm volatile("red.relaxed%2.add%3%4 [%0], %1;" ::"l"(address),
                 "r"(bits_as<AtomicBits<T>>(value)), "C"(Memory::text), "C"(Op::Kind::text), "n"(32)
                 : "memory");
  } else if constexpr (sizeof(Address) == 8) {
    asm volatile("red.relaxed%2.add%3%4 [%0], %1;" ::"l"(address),
                 "l"(bits_as<AtomicBits<T>>(value)), "C"(Memory::text), "C"(Op::Kind::text), "n"(64)
                 : "memory");
  } else if constexpr (sizeof(T) == 4) {
    asm volatile("red.relaxed%2.add%3%4 [%0], %1;" ::"r"(address),
                 "r"(bits_as<AtomicBits<T>>(value)), "C"(Memory::text), "C"(Op::Kind::text), "n"(32)
                 : "memory");
  } else {
    asm volatile("red.relaxed%2.add%3%4 [%0], %1;" ::"r"(address),
                 "l"(bits_as<AtomicBits<T>>(value)), "C"(Memory::text), "C"(Op::Kind::text), "n"(64)
                 : "memory");
  }
}

#else

template <class T>
inline constexpr sim::AtomicType kAtomicType =
    std::is_same_v<T, float>           ? sim::AtomicType::f32
    : std::is_same_v<T, double>        ? sim::AtomicType::f64
    : std::is_same_v<T, std::int32_t>  ? sim::AtomicType::s32
    : std::is_same_v<T, std::uint32_t> ? sim::AtomicType::u32
    : std::is_same_v<T, std::int64_t>  ? sim::AtomicType::s64
                                       : sim::AtomicType::u64;

template <AtomicValue T>
T atom(sim::AtomicOp op, T* address, T value, T expected, SourceLocation where) {
  std::uint64_t const old = sim::atomic(op, kAtomicType<T>, address, bits_as<AtomicBits<T>>(value),
                                        bits_as<AtomicBits<T>>(expected), where);
  return bits_as<T>(static_cast<AtomicBits<T>>(old));
}
template <Scope S, AtomicValue T>
T atom_shared(sim::AtomicOp op, SharedAddr address, T value, T expected, SourceLocation where) {
  std::uint64_t const old =
      sim::atomic_shared(op, kAtomicType<T>, address, bits_as<AtomicBits<T>>(value),
                         bits_as<AtomicBits<T>>(expected), S, where);
  return bits_as<T>(static_cast<AtomicBits<T>>(old));
}

#endif

}  // namespace detail

/// Adds value to *address; returns what was there before.
template <AtomicValue T>
TEGULA_DEVICE T atom_add(T* address, T value,
                         [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  return detail::atom<detail::GlobalAtomicText, detail::AddText<T>>(address, value);
#else
  return detail::atom(sim::AtomicOp::add, address, value, T{}, where);
#endif
}
/// Likewise to shared memory.
template <Scope S = Scope::cta, AtomicValue T>
requires(S == Scope::cta || S == Scope::cluster) TEGULA_DEVICE T
    atom_shared_add(SharedAddr address, T value,
                    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  return detail::atom<detail::SharedAtomicText<S>, detail::AddText<T>>(address, value);
#else
  return detail::atom_shared<S>(sim::AtomicOp::add, address, value, T{}, where);
#endif
}

/// Adds value to *address, with no result.
template <AtomicValue T>
TEGULA_DEVICE void red_add(T* address, T value,
                           [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  detail::red_add<detail::GlobalAtomicText>(address, value);
#else
  detail::atom(sim::AtomicOp::add, address, value, T{}, where);
#endif
}
/// Likewise to shared memory.
template <Scope S = Scope::cta, AtomicValue T>
requires(S == Scope::cta || S == Scope::cluster) TEGULA_DEVICE
    void red_shared_add(SharedAddr address, T value,
                        [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  detail::red_add<detail::SharedAtomicText<S>>(address, value);
#else
  detail::atom_shared<S>(sim::AtomicOp::add, address, value, T{}, where);
#endif
}

/// Stores the smaller of value and *address; returns what was there before.
template <AtomicInteger T>
TEGULA_DEVICE T atom_min(T* address, T value,
                         [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  return detail::atom<detail::GlobalAtomicText, detail::MinText<T>>(address, value);
#else
  return detail::atom(sim::AtomicOp::min, address, value, T{}, where);
#endif
}
/// Likewise in shared memory.
template <Scope S = Scope::cta, AtomicInteger T>
requires(S == Scope::cta || S == Scope::cluster) TEGULA_DEVICE T
    atom_shared_min(SharedAddr address, T value,
                    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  return detail::atom<detail::SharedAtomicText<S>, detail::MinText<T>>(address, value);
#else
  return detail::atom_shared<S>(sim::AtomicOp::min, address, value, T{}, where);
#endif
}

/// Stores the larger of value and *address; returns what was there before.
template <AtomicInteger T>
TEGULA_DEVICE T atom_max(T* address, T value,
                         [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  return detail::atom<detail::GlobalAtomicText, detail::MaxText<T>>(address, value);
#else
  return detail::atom(sim::AtomicOp::max, address, value, T{}, where);
#endif
}
/// Likewise in shared memory.
template <Scope S = Scope::cta, AtomicInteger T>
requires(S == Scope::cta || S == Scope::cluster) TEGULA_DEVICE T
    atom_shared_max(SharedAddr address, T value,
                    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  return detail::atom<detail::SharedAtomicText<S>, detail::MaxText<T>>(address, value);
#else
  return detail::atom_shared<S>(sim::AtomicOp::max, address, value, T{}, where);
#endif
}

/// Stores value; returns what was there before.
template <AtomicValue T>
TEGULA_DEVICE T atom_exch(T* address, T value,
                          [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  return detail::atom<detail::GlobalAtomicText, detail::ExchText<T>>(address, value);
#else
  return detail::atom(sim::AtomicOp::exchange, address, value, T{}, where);
#endif
}
/// Likewise in shared memory.
template <Scope S = Scope::cta, AtomicValue T>
requires(S == Scope::cta || S == Scope::cluster) TEGULA_DEVICE T
    atom_shared_exch(SharedAddr address, T value,
                     [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  return detail::atom<detail::SharedAtomicText<S>, detail::ExchText<T>>(address, value);
#else
  return detail::atom_shared<S>(sim::AtomicOp::exchange, address, value, T{}, where);
#endif
}

/// Stores value where *address has the bits of expected; returns what was there before.
template <AtomicValue T>
TEGULA_DEVICE T atom_cas(T* address, T expected, T value,
                         [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  return detail::atom_cas<detail::GlobalAtomicText>(address, expected, value);
#else
  return detail::atom(sim::AtomicOp::compare_and_swap, address, value, expected, where);
#endif
}
/// Likewise in shared memory.
template <Scope S = Scope::cta, AtomicValue T>
requires(S == Scope::cta || S == Scope::cluster) TEGULA_DEVICE T
    atom_shared_cas(SharedAddr address, T expected, T value,
                    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  return detail::atom_cas<detail::SharedAtomicText<S>>(address, expected, value);
#else
  return detail::atom_shared<S>(sim::AtomicOp::compare_and_swap, address, value, expected, where);
#endif
}

}  // namespace tegula
