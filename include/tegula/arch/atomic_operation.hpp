#pragma once

#include <cstdint>
#include <type_traits>

#include "tegula/arch/atomic_spec.hpp"
#include "tegula/arch/memory_access.hpp"
#include "tegula/arch/shared.hpp"
#include "tegula/arch/source_location.hpp"
#include "tegula/arch/vector.hpp"
#include "tegula/numeric/bfloat16.hpp"
#include "tegula/numeric/half.hpp"
#if TEGULA_GPU
#include "tegula/arch/assembler_text.hpp"
#else
#include "tegula/sim/hooks.hpp"
#endif

/// What atomic.hpp and reduction.hpp have in common: which operations there are of which types, and
/// the one place where an atomic is executed.
namespace tegula {

/// Integers of 32 or 64 bits.
template <class T>
concept AtomicInteger = std::is_integral_v<T> &&(sizeof(T) == 4 || sizeof(T) == 8);
template <class T>
concept AtomicValue = AtomicInteger<T> || std::is_same_v<T, float> || std::is_same_v<T, double>;
/// Floating-point values of 16 bits.
template <class T>
concept AtomicShortFloat = std::is_same_v<T, half> || std::is_same_v<T, bfloat16>;

namespace detail {

/// What an operation takes values of type T for. Sums are of unsigned integers: they have the same
/// bits.
template <AtomicOp Op, class T> constexpr AtomicType atomic_type() {
  using enum AtomicType;
  constexpr auto of_size = [](AtomicType narrow, AtomicType wide) {
    return sizeof(T) == 4 ? narrow : wide;
  };
  switch (Op) {
    case AtomicOp::exchange:
    case AtomicOp::compare_and_swap:
      return sizeof(T) == 2 ? b16 : sizeof(T) == 16 ? b128 : of_size(b32, b64);
    case AtomicOp::bit_and:
    case AtomicOp::bit_or:
    case AtomicOp::bit_xor:
      return of_size(b32, b64);
    case AtomicOp::inc:
    case AtomicOp::dec:
      return u32;
    default:
      if (AtomicShortFloat<T>) return std::is_same_v<T, half> ? f16 : bf16;
      if (std::is_floating_point_v<T>) return of_size(f32, f64);
      return Op != AtomicOp::add && std::is_signed_v<T> ? of_size(s32, s64) : of_size(u32, u64);
  }
}

/// What one instruction changes, as elements and their number: sums are of each element of a vector
/// by itself.
template <AtomicOp Op, class V> struct AtomicElements {
  using Element = V;
  static constexpr int count = 1;
};
template <class T, int N> struct AtomicElements<AtomicOp::add, Vector<T, N>> {
  using Element = T;
  static constexpr int count = N;
};

/// Refuses what PTX does not have.
template <AtomicOp Op, Scope S, MemoryOrder O, bool Shared, bool Returns, class V>
TEGULA_DEVICE constexpr void check_atomic() {
  using enum AtomicOp;
  using T = typename AtomicElements<Op, V>::Element;
  constexpr int n = AtomicElements<Op, V>::count, size = sizeof(T);
  static_assert(Op != add || AtomicValue<T> || AtomicShortFloat<T>,
                "an atomic sum is of integers of 32 or 64 bits, float, double, half or bfloat16");
  static_assert((Op != min && Op != max) || AtomicInteger<T>,
                "an atomic min or max is of integers of 32 or 64 bits");
  static_assert((Op != bit_and && Op != bit_or && Op != bit_xor) || AtomicInteger<T>,
                "an atomic and, or or xor is of integers of 32 or 64 bits");
  static_assert((Op != inc && Op != dec) || std::is_same_v<T, std::uint32_t>,
                "an atomic inc or dec is of std::uint32_t");
  static_assert(
      Op != exchange || (std::is_trivially_copyable_v<T> && (size == 4 || size == 8 || size == 16)),
      "an atomic exchange is of a trivially copyable value of 4, 8 or 16 bytes");
  static_assert(Op != compare_and_swap || (std::is_trivially_copyable_v<T> &&
                                           (size == 2 || size == 4 || size == 8 || size == 16)),
                "an atomic cas is of a trivially copyable value of 2, 4, 8 or 16 bytes");
  static_assert(n == 1 || Shared || (std::is_same_v<T, float> && (n == 2 || n == 4)) ||
                    (AtomicShortFloat<T> && (n == 2 || n == 4 || n == 8)),
                "an atomic sum of a vector is of 2 or 4 floats, or of 2, 4 or 8 half or bfloat16");
  static_assert(n == 1 || !Shared || (AtomicShortFloat<T> && n == 2),
                "an atomic sum of a vector in shared memory is of 2 half or bfloat16");
  // What ptxas 13.0 makes of the others for sm_90a falls back on a load and a store where the
  // memory is a peer's. An H200 loses updates by min, max, and, or and xor of 64 bits.
  static_assert(
      !Shared || S == Scope::cta || !(sizeof(T) > 4 || n > 1) || (Op == add && n == 1),
      "in the shared memory of a cluster, atomics of more than 4 bytes and of pairs are no "
      "atomics on a GPU, but for the sums of one integer, float or double");
  static_assert(Returns || !acquires(O),
                "red has no result, and so acquires nothing: its order is relaxed or release");
}

/// The spec of an operation. (Device code calls no function of the host: it reads constants.)
template <AtomicOp Op, Scope S, MemoryOrder O, bool Shared, bool Returns, class V>
struct AtomicSpecOf {
  using Of = AtomicElements<Op, V>;
  static constexpr AtomicSpec value = {
      Op, atomic_type<Op, typename Of::Element>(), S, O, Shared, Returns, Of::count};
};

#if TEGULA_GPU

/// "atom.acq_rel.gpu.global.add.noftz.v4.bf16x2"
constexpr AssemblerText<64> atomic_text(AtomicSpec const& s) {
  constexpr char const* orders[] = {".relaxed", ".acquire", ".release", ".acq_rel"};
  constexpr char const* scopes[] = {".cta", ".cluster", ".gpu", ".sys"};
  int const vector = is_packed(s) ? s.elements / 2 : s.elements;
  AssemblerText<64> text;
  text.append(s.returns ? "atom" : "red")
      .append(orders[static_cast<int>(s.order)])
      .append(scopes[static_cast<int>(s.scope)])
      .append(!s.shared               ? ".global."
              : s.scope == Scope::cta ? ".shared::cta."
                                      : ".shared::cluster.")
      .append(to_string(s.op))
      .append(is_short_float(s.type) ? ".noftz" : "");
  if (vector > 1) text.append(".v").append(vector);
  return text.append(".").append(to_string(s.type)).append(is_packed(s) ? "x2" : "");
}

/// What device code asks of a spec.
template <AtomicSpec S> struct AtomicFacts {
  using Text = AssemblerCharacters<atomic_text(S)>;
  static constexpr int bytes = bytes_of(S);
};

/// The instruction, by the registers that its operands take; addresses of shared memory have 64
/// bits here, of which PTX takes the lower ones.
template <AtomicSpec S, class V>
TEGULA_DEVICE V atom_statement(std::uint64_t address, V const& value) {
  using Text = typename AtomicFacts<S>::Text;
  constexpr int bytes = AtomicFacts<S>::bytes;
  if constexpr (bytes == 2) {
    std::uint16_t old;
    asm volatile("%3 %0, [%1], %2;"
                 : "=h"(old)
                 : "l"(address), "h"(bits_as<std::uint16_t>(value)), "C"(Text::value)
                 : "memory");
    return bits_as<V>(old);
  } else if constexpr (bytes == 4) {
    std::uint32_t old;
    asm volatile("%3 %0, [%1], %2;"
                 : "=r"(old)
                 : "l"(address), "r"(bits_as<std::uint32_t>(value)), "C"(Text::value)
                 : "memory");
    return bits_as<V>(old);
  } else if constexpr (S.type == AtomicType::b128) {
    auto const v = bits_as<Vector<std::uint64_t, 2>>(value);
    Vector<std::uint64_t, 2> old;
    asm volatile(
        "{\n.reg .b128 v, o;\nmov.b128 v, {%3, %4};\n%5 o, [%2], v;\nmov.b128 {%0, %1}, o;\n}"
        : "=l"(old.data[0]), "=l"(old.data[1])
        : "l"(address), "l"(v.data[0]), "l"(v.data[1]), "C"(Text::value)
        : "memory");
    return bits_as<V>(old);
  } else if constexpr (bytes == 16) {
    auto const v = bits_as<RegisterBits<16>>(value);
    RegisterBits<16> old;
    asm volatile("%9 {%0, %1, %2, %3}, [%4], {%5, %6, %7, %8};"
                 : "=r"(old.word[0]), "=r"(old.word[1]), "=r"(old.word[2]), "=r"(old.word[3])
                 : "l"(address), "r"(v.word[0]), "r"(v.word[1]), "r"(v.word[2]), "r"(v.word[3]),
                   "C"(Text::value)
                 : "memory");
    return bits_as<V>(old);
  } else if constexpr (S.elements > 1) {
    auto const v = bits_as<RegisterBits<8>>(value);
    RegisterBits<8> old;
    asm volatile("%5 {%0, %1}, [%2], {%3, %4};"
                 : "=r"(old.word[0]), "=r"(old.word[1])
                 : "l"(address), "r"(v.word[0]), "r"(v.word[1]), "C"(Text::value)
                 : "memory");
    return bits_as<V>(old);
  } else {
    std::uint64_t old;
    asm volatile("%3 %0, [%1], %2;"
                 : "=l"(old)
                 : "l"(address), "l"(bits_as<std::uint64_t>(value)), "C"(Text::value)
                 : "memory");
    return bits_as<V>(old);
  }
}

template <AtomicSpec S, class V>
TEGULA_DEVICE V cas_statement(std::uint64_t address, V const& expected, V const& value) {
  using Text = typename AtomicFacts<S>::Text;
  if constexpr (sizeof(V) == 2) {
    std::uint16_t old;
    asm volatile("%4 %0, [%1], %2, %3;"
                 : "=h"(old)
                 : "l"(address), "h"(bits_as<std::uint16_t>(expected)),
                   "h"(bits_as<std::uint16_t>(value)), "C"(Text::value)
                 : "memory");
    return bits_as<V>(old);
  } else if constexpr (sizeof(V) == 4) {
    std::uint32_t old;
    asm volatile("%4 %0, [%1], %2, %3;"
                 : "=r"(old)
                 : "l"(address), "r"(bits_as<std::uint32_t>(expected)),
                   "r"(bits_as<std::uint32_t>(value)), "C"(Text::value)
                 : "memory");
    return bits_as<V>(old);
  } else if constexpr (sizeof(V) == 8) {
    std::uint64_t old;
    asm volatile("%4 %0, [%1], %2, %3;"
                 : "=l"(old)
                 : "l"(address), "l"(bits_as<std::uint64_t>(expected)),
                   "l"(bits_as<std::uint64_t>(value)), "C"(Text::value)
                 : "memory");
    return bits_as<V>(old);
  } else {
    auto const e = bits_as<Vector<std::uint64_t, 2>>(expected);
    auto const v = bits_as<Vector<std::uint64_t, 2>>(value);
    Vector<std::uint64_t, 2> old;
    asm volatile(
        "{\n.reg .b128 e, v, o;\nmov.b128 e, {%3, %4};\nmov.b128 v, {%5, %6};\n"
        "%7 o, [%2], e, v;\nmov.b128 {%0, %1}, o;\n}"
        : "=l"(old.data[0]), "=l"(old.data[1])
        : "l"(address), "l"(e.data[0]), "l"(e.data[1]), "l"(v.data[0]), "l"(v.data[1]),
          "C"(Text::value)
        : "memory");
    return bits_as<V>(old);
  }
}

template <AtomicSpec S, class V>
TEGULA_DEVICE void red_statement(std::uint64_t address, V const& value) {
  using Text = typename AtomicFacts<S>::Text;
  constexpr int bytes = AtomicFacts<S>::bytes;
  if constexpr (bytes == 2) {
    asm volatile("%2 [%0], %1;" ::"l"(address), "h"(bits_as<std::uint16_t>(value)), "C"(Text::value)
                 : "memory");
  } else if constexpr (bytes == 4) {
    asm volatile("%2 [%0], %1;" ::"l"(address), "r"(bits_as<std::uint32_t>(value)), "C"(Text::value)
                 : "memory");
  } else if constexpr (bytes == 16) {
    auto const v = bits_as<RegisterBits<16>>(value);
    asm volatile("%5 [%0], {%1, %2, %3, %4};" ::"l"(address), "r"(v.word[0]), "r"(v.word[1]),
                 "r"(v.word[2]), "r"(v.word[3]), "C"(Text::value)
                 : "memory");
  } else if constexpr (S.elements > 1) {
    auto const v = bits_as<RegisterBits<8>>(value);
    asm volatile("%3 [%0], {%1, %2};" ::"l"(address), "r"(v.word[0]), "r"(v.word[1]),
                 "C"(Text::value)
                 : "memory");
  } else {
    asm volatile("%2 [%0], %1;" ::"l"(address), "l"(bits_as<std::uint64_t>(value)), "C"(Text::value)
                 : "memory");
  }
}

TEGULA_DEVICE std::uint64_t atomic_address(void const* address) {
  return reinterpret_cast<std::uint64_t>(address);
}
TEGULA_DEVICE std::uint64_t atomic_address(SharedAddr address) { return address; }

#endif

/// Whether an address is one of shared memory.
template <class Address> inline constexpr bool is_shared = std::is_same_v<Address, SharedAddr>;

/// Performs an operation on what is at a pointer to global memory, or at a SharedAddr; returns what
/// was there before.
template <AtomicOp Op, Scope S, MemoryOrder O, class Address, class V>
TEGULA_DEVICE V atom(Address address, V const& value, [[maybe_unused]] SourceLocation where) {
  check_atomic<Op, S, O, is_shared<Address>, true, V>();
  constexpr AtomicSpec spec = AtomicSpecOf<Op, S, O, is_shared<Address>, true, V>::value;
#if TEGULA_GPU
  return atom_statement<spec>(atomic_address(address), value);
#else
  V old;
  sim::atomic(spec, address, &value, nullptr, &old, where);
  return old;
#endif
}
template <Scope S, MemoryOrder O, class Address, class V>
TEGULA_DEVICE V atom_cas(Address address, V const& expected, V const& value,
                         [[maybe_unused]] SourceLocation where) {
  constexpr AtomicOp op = AtomicOp::compare_and_swap;
  check_atomic<op, S, O, is_shared<Address>, true, V>();
  constexpr AtomicSpec spec = AtomicSpecOf<op, S, O, is_shared<Address>, true, V>::value;
#if TEGULA_GPU
  return cas_statement<spec>(atomic_address(address), expected, value);
#else
  V old;
  sim::atomic(spec, address, &value, &expected, &old, where);
  return old;
#endif
}
/// Likewise without a result.
template <AtomicOp Op, Scope S, MemoryOrder O, class Address, class V>
TEGULA_DEVICE void red(Address address, V const& value, [[maybe_unused]] SourceLocation where) {
  check_atomic<Op, S, O, is_shared<Address>, false, V>();
  constexpr AtomicSpec spec = AtomicSpecOf<Op, S, O, is_shared<Address>, false, V>::value;
#if TEGULA_GPU
  red_statement<spec>(atomic_address(address), value);
#else
  sim::atomic(spec, address, &value, nullptr, nullptr, where);
#endif
}

}  // namespace detail

}  // namespace tegula
