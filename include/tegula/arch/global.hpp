#pragma once

#include <cstdint>

#include "tegula/arch/memory_access.hpp"
#include "tegula/arch/source_location.hpp"
#if !TEGULA_GPU
#include "tegula/sim/hooks.hpp"
#endif

/// Global memory: PTX ISA, ld.global, st.global. Volatile statements without a "memory" clobber, as
/// in shared.hpp.
namespace tegula {

/// Loads a V from global memory.
template <MemoryValue V>
TEGULA_DEVICE V ld_global(void const* address,
                          [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  if constexpr (sizeof(V) == 1) {
    std::uint16_t r;
    asm volatile("ld.global.u8 %0, [%1];" : "=h"(r) : "l"(address));
    return bits_as<V>(static_cast<std::uint8_t>(r));
  } else if constexpr (sizeof(V) == 2) {
    std::uint16_t r;
    asm volatile("ld.global.u16 %0, [%1];" : "=h"(r) : "l"(address));
    return bits_as<V>(r);
  } else if constexpr (sizeof(V) == 4) {
    RegisterBits<4> r;
    asm volatile("ld.global.b32 %0, [%1];" : "=r"(r.word[0]) : "l"(address));
    return bits_as<V>(r);
  } else if constexpr (sizeof(V) == 8) {
    RegisterBits<8> r;
    asm volatile("ld.global.v2.b32 {%0, %1}, [%2];"
                 : "=r"(r.word[0]), "=r"(r.word[1])
                 : "l"(address));
    return bits_as<V>(r);
  } else {
    RegisterBits<16> r;
    asm volatile("ld.global.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r.word[0]), "=r"(r.word[1]), "=r"(r.word[2]), "=r"(r.word[3])
                 : "l"(address));
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
template <MemoryValue V>
TEGULA_DEVICE V ld_global_nc(void const* address,
                             [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  if constexpr (sizeof(V) == 1) {
    std::uint16_t r;
    asm("ld.global.nc.u8 %0, [%1];" : "=h"(r) : "l"(address));
    return bits_as<V>(static_cast<std::uint8_t>(r));
  } else if constexpr (sizeof(V) == 2) {
    std::uint16_t r;
    asm("ld.global.nc.u16 %0, [%1];" : "=h"(r) : "l"(address));
    return bits_as<V>(r);
  } else if constexpr (sizeof(V) == 4) {
    RegisterBits<4> r;
    asm("ld.global.nc.b32 %0, [%1];" : "=r"(r.word[0]) : "l"(address));
    return bits_as<V>(r);
  } else if constexpr (sizeof(V) == 8) {
    RegisterBits<8> r;
    asm("ld.global.nc.v2.b32 {%0, %1}, [%2];" : "=r"(r.word[0]), "=r"(r.word[1]) : "l"(address));
    return bits_as<V>(r);
  } else {
    RegisterBits<16> r;
    asm("ld.global.nc.v4.b32 {%0, %1, %2, %3}, [%4];"
        : "=r"(r.word[0]), "=r"(r.word[1]), "=r"(r.word[2]), "=r"(r.word[3])
        : "l"(address));
    return bits_as<V>(r);
  }
#else
  RegisterBits<sizeof(V)> r;
  sim::ld_global_nc(&r, address, sizeof(V), where);
  return bits_as<V>(r);
#endif
}

/// Stores a V to global memory.
template <MemoryValue V>
TEGULA_DEVICE void st_global(void* address, V const& value,
                             [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  auto const r = bits_as<RegisterBits<sizeof(V)>>(value);
#if TEGULA_GPU
  if constexpr (sizeof(V) == 1) {
    asm volatile("st.global.u8 [%0], %1;" ::"l"(address), "h"(static_cast<std::uint16_t>(r.byte)));
  } else if constexpr (sizeof(V) == 2) {
    asm volatile("st.global.u16 [%0], %1;" ::"l"(address), "h"(r.half));
  } else if constexpr (sizeof(V) == 4) {
    asm volatile("st.global.b32 [%0], %1;" ::"l"(address), "r"(r.word[0]));
  } else if constexpr (sizeof(V) == 8) {
    asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(address), "r"(r.word[0]), "r"(r.word[1]));
  } else {
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(address), "r"(r.word[0]),
                 "r"(r.word[1]), "r"(r.word[2]), "r"(r.word[3]));
  }
#else
  sim::st_global(address, &r, sizeof(V), where);
#endif
}

}  // namespace tegula
