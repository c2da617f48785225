#pragma once

#include <cstdint>

#include "tegula/arch/cache_hint.hpp"
#include "tegula/arch/memory_access.hpp"
#include "tegula/arch/source_location.hpp"
#if !TEGULA_GPU
#include "tegula/sim/hooks.hpp"
#endif

/// Global memory: PTX ISA, ld.global, st.global. Volatile statements without a "memory" clobber, as
/// in shared.hpp. A V of 32 bytes (.v8.b32) is for sm_100.
namespace tegula {

/// Loads a V from global memory. H tells the caches how it is used.
template <GlobalValue V, CacheHint H = CacheHint{}>
TEGULA_DEVICE V ld_global(void const* address,
                          [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  static_assert(detail::HintChecked<H, detail::Hinted::ld>::value);
#if TEGULA_GPU
  using Qualifiers = detail::HintQualifiers<H>;
  using Policy = detail::PolicyOperand<H.l2>;
  if constexpr (sizeof(V) == 1) {
    std::uint16_t r;
    asm volatile("ld.global%2.u8 %0, [%1]%3;"
                 : "=h"(r)
                 : "l"(address), "C"(Qualifiers::text), "C"(Policy::text));
    return bits_as<V>(static_cast<std::uint8_t>(r));
  } else if constexpr (sizeof(V) == 2) {
    std::uint16_t r;
    asm volatile("ld.global%2.u16 %0, [%1]%3;"
                 : "=h"(r)
                 : "l"(address), "C"(Qualifiers::text), "C"(Policy::text));
    return bits_as<V>(r);
  } else if constexpr (sizeof(V) == 4) {
    RegisterBits<4> r;
    asm volatile("ld.global%2.b32 %0, [%1]%3;"
                 : "=r"(r.word[0])
                 : "l"(address), "C"(Qualifiers::text), "C"(Policy::text));
    return bits_as<V>(r);
  } else if constexpr (sizeof(V) == 8) {
    RegisterBits<8> r;
    asm volatile("ld.global%3.v2.b32 {%0, %1}, [%2]%4;"
                 : "=r"(r.word[0]), "=r"(r.word[1])
                 : "l"(address), "C"(Qualifiers::text), "C"(Policy::text));
    return bits_as<V>(r);
  } else if constexpr (sizeof(V) == 16) {
    RegisterBits<16> r;
    asm volatile("ld.global%5.v4.b32 {%0, %1, %2, %3}, [%4]%6;"
                 : "=r"(r.word[0]), "=r"(r.word[1]), "=r"(r.word[2]), "=r"(r.word[3])
                 : "l"(address), "C"(Qualifiers::text), "C"(Policy::text));
    return bits_as<V>(r);
  } else {
    RegisterBits<32> r;
    asm volatile("ld.global%9.v8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8]%10;"
                 : "=r"(r.word[0]), "=r"(r.word[1]), "=r"(r.word[2]), "=r"(r.word[3]),
                   "=r"(r.word[4]), "=r"(r.word[5]), "=r"(r.word[6]), "=r"(r.word[7])
                 : "l"(address), "C"(Qualifiers::text), "C"(Policy::text));
    return bits_as<V>(r);
  }
#else
  RegisterBits<sizeof(V)> r;
  sim::ld_global(&r, address, sizeof(V), where);
  return bits_as<V>(r);
#endif
}

/// Loads a V from global memory that nobody writes during the launch (ld.global.nc). Not volatile:
/// the compiler may move or merge it.
template <GlobalValue V, CacheHint H = CacheHint{}>
TEGULA_DEVICE V ld_global_nc(void const* address,
                             [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  static_assert(detail::HintChecked<H, detail::Hinted::ld_nc>::value);
#if TEGULA_GPU
  using Qualifiers = detail::HintQualifiers<H, true>;
  using Policy = detail::PolicyOperand<H.l2>;
  if constexpr (sizeof(V) == 1) {
    std::uint16_t r;
    asm("ld.global%2.u8 %0, [%1]%3;"
        : "=h"(r)
        : "l"(address), "C"(Qualifiers::text), "C"(Policy::text));
    return bits_as<V>(static_cast<std::uint8_t>(r));
  } else if constexpr (sizeof(V) == 2) {
    std::uint16_t r;
    asm("ld.global%2.u16 %0, [%1]%3;"
        : "=h"(r)
        : "l"(address), "C"(Qualifiers::text), "C"(Policy::text));
    return bits_as<V>(r);
  } else if constexpr (sizeof(V) == 4) {
    RegisterBits<4> r;
    asm("ld.global%2.b32 %0, [%1]%3;"
        : "=r"(r.word[0])
        : "l"(address), "C"(Qualifiers::text), "C"(Policy::text));
    return bits_as<V>(r);
  } else if constexpr (sizeof(V) == 8) {
    RegisterBits<8> r;
    asm("ld.global%3.v2.b32 {%0, %1}, [%2]%4;"
        : "=r"(r.word[0]), "=r"(r.word[1])
        : "l"(address), "C"(Qualifiers::text), "C"(Policy::text));
    return bits_as<V>(r);
  } else if constexpr (sizeof(V) == 16) {
    RegisterBits<16> r;
    asm("ld.global%5.v4.b32 {%0, %1, %2, %3}, [%4]%6;"
        : "=r"(r.word[0]), "=r"(r.word[1]), "=r"(r.word[2]), "=r"(r.word[3])
        : "l"(address), "C"(Qualifiers::text), "C"(Policy::text));
    return bits_as<V>(r);
  } else {
    RegisterBits<32> r;
    asm("ld.global%9.v8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8]%10;"
        : "=r"(r.word[0]), "=r"(r.word[1]), "=r"(r.word[2]), "=r"(r.word[3]), "=r"(r.word[4]),
          "=r"(r.word[5]), "=r"(r.word[6]), "=r"(r.word[7])
        : "l"(address), "C"(Qualifiers::text), "C"(Policy::text));
    return bits_as<V>(r);
  }
#else
  RegisterBits<sizeof(V)> r;
  sim::ld_global_nc(&r, address, sizeof(V), where);
  return bits_as<V>(r);
#endif
}

/// Stores a V to global memory. H tells the caches how it is used. What a number is stored to is of
/// its type, or of bits of its size.
template <CacheHint H = CacheHint{}, GlobalValue V>
TEGULA_DEVICE void st_global(void* address, V const& value,
                             [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  static_assert(detail::HintChecked<H, detail::Hinted::st>::value);
  auto const r = bits_as<RegisterBits<sizeof(V)>>(value);
#if TEGULA_GPU
  using Qualifiers = detail::HintQualifiers<H>;
  using Policy = detail::PolicyOperand<H.l2>;
  if constexpr (sizeof(V) == 1) {
    asm volatile("st.global%2.u8 [%0], %1%3;" ::"l"(address),
                 "h"(static_cast<std::uint16_t>(r.byte)), "C"(Qualifiers::text), "C"(Policy::text));
  } else if constexpr (sizeof(V) == 2) {
    asm volatile("st.global%2.u16 [%0], %1%3;" ::"l"(address), "h"(r.half), "C"(Qualifiers::text),
                 "C"(Policy::text));
  } else if constexpr (sizeof(V) == 4) {
    asm volatile("st.global%2.b32 [%0], %1%3;" ::"l"(address), "r"(r.word[0]),
                 "C"(Qualifiers::text), "C"(Policy::text));
  } else if constexpr (sizeof(V) == 8) {
    asm volatile("st.global%3.v2.b32 [%0], {%1, %2}%4;" ::"l"(address), "r"(r.word[0]),
                 "r"(r.word[1]), "C"(Qualifiers::text), "C"(Policy::text));
  } else if constexpr (sizeof(V) == 16) {
    asm volatile("st.global%5.v4.b32 [%0], {%1, %2, %3, %4}%6;" ::"l"(address), "r"(r.word[0]),
                 "r"(r.word[1]), "r"(r.word[2]), "r"(r.word[3]), "C"(Qualifiers::text),
                 "C"(Policy::text));
  } else {
    asm volatile("st.global%9.v8.b32 [%0], {%1, %2, %3, %4, %5, %6, %7, %8}%10;" ::"l"(address),
                 "r"(r.word[0]), "r"(r.word[1]), "r"(r.word[2]), "r"(r.word[3]), "r"(r.word[4]),
                 "r"(r.word[5]), "r"(r.word[6]), "r"(r.word[7]), "C"(Qualifiers::text),
                 "C"(Policy::text));
  }
#else
  sim::st_global(address, &r, sizeof(V), where);
#endif
}

namespace detail {
/// Unsigned integers are bits, of any size, and a char is memory as such.
template <class T, class V>
inline constexpr bool stores_bits = std::is_same_v<T, V> || std::is_same_v<T, char> ||
                                    std::is_same_v<T, unsigned char> ||
                                    (std::is_unsigned_v<T> && std::is_unsigned_v<V>) ||
                                    (sizeof(T) == sizeof(V) &&
                                     (std::is_unsigned_v<T> || std::is_unsigned_v<V>));
}  // namespace detail

/// Numbers of two types are not taken for each other's bits: an int is no float.
template <CacheHint H = CacheHint{}, class T, GlobalValue V>
requires(std::is_arithmetic_v<T>&& std::is_arithmetic_v<V> &&
         !detail::stores_bits<T, V>) TEGULA_DEVICE
    void st_global(T*, V const&, SourceLocation = SourceLocation::current()) {
  static_assert(sizeof(V) == 0,
                "st_global: the address is of another type than the value, whose bytes are stored "
                "as they are: convert the value");
}

}  // namespace tegula
