#pragma once

#include <cstdint>

#include "tegula/arch/memory_access.hpp"
#include "tegula/arch/source_location.hpp"
#if !TEGULA_GPU
#include "tegula/sim/hooks.hpp"
#endif

/// Shared memory: PTX ISA, ld.shared and st.shared. The assembler statements carry no "memory"
/// clobber: they keep their order among themselves and with barriers because they are volatile, and
/// a kernel touches shared memory through these functions alone.
namespace tegula {

/// An address in the CTA's shared window, in bytes.
using SharedAddr = std::uint32_t;

/// The shared-window address of an object in SharedStorage.
template <class T>
TEGULA_DEVICE SharedAddr
shared_address(T const* object, [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  return static_cast<SharedAddr>(__cvta_generic_to_shared(object));
#else
  return sim::shared_address(object, where);
#endif
}

/// Loads a V from shared memory.
template <MemoryValue V>
TEGULA_DEVICE V ld_shared(SharedAddr address,
                          [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  if constexpr (sizeof(V) == 1) {
    std::uint16_t r;
    asm volatile("ld.shared.u8 %0, [%1];" : "=h"(r) : "r"(address));
    return bits_as<V>(static_cast<std::uint8_t>(r));
  } else if constexpr (sizeof(V) == 2) {
    std::uint16_t r;
    asm volatile("ld.shared.u16 %0, [%1];" : "=h"(r) : "r"(address));
    return bits_as<V>(r);
  } else if constexpr (sizeof(V) == 4) {
    RegisterBits<4> r;
    asm volatile("ld.shared.b32 %0, [%1];" : "=r"(r.word[0]) : "r"(address));
    return bits_as<V>(r);
  } else if constexpr (sizeof(V) == 8) {
    RegisterBits<8> r;
    asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];"
                 : "=r"(r.word[0]), "=r"(r.word[1])
                 : "r"(address));
    return bits_as<V>(r);
  } else {
    RegisterBits<16> r;
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r.word[0]), "=r"(r.word[1]), "=r"(r.word[2]), "=r"(r.word[3])
                 : "r"(address));
    return bits_as<V>(r);
  }
#else
  RegisterBits<sizeof(V)> r;
  sim::ld_shared(&r, address, sizeof(V), where);
  return bits_as<V>(r);
#endif
}

/// Stores a V to shared memory.
template <MemoryValue V>
TEGULA_DEVICE void st_shared(SharedAddr address, V const& value,
                             [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
  auto const r = bits_as<RegisterBits<sizeof(V)>>(value);
#if TEGULA_GPU
  if constexpr (sizeof(V) == 1) {
    asm volatile("st.shared.u8 [%0], %1;" ::"r"(address), "h"(static_cast<std::uint16_t>(r.byte)));
  } else if constexpr (sizeof(V) == 2) {
    asm volatile("st.shared.u16 [%0], %1;" ::"r"(address), "h"(r.half));
  } else if constexpr (sizeof(V) == 4) {
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(address), "r"(r.word[0]));
  } else if constexpr (sizeof(V) == 8) {
    asm volatile("st.shared.v2.b32 [%0], {%1, %2};" ::"r"(address), "r"(r.word[0]), "r"(r.word[1]));
  } else {
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(r.word[0]),
                 "r"(r.word[1]), "r"(r.word[2]), "r"(r.word[3]));
  }
#else
  sim::st_shared(address, &r, sizeof(V), where);
#endif
}

/// Writes zeros to `bytes` bytes of this CTA's shared memory, by one thread. The address and
/// `bytes` are multiples of 8. An ordinary write: others see it after a barrier, and TMA after a
/// fence_proxy_async. (PTX ISA, st.bulk, sm_100: 0 is its only value.)
TEGULA_DEVICE void st_bulk_zero(SharedAddr address, int bytes,
                                [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile("st.bulk.weak.shared::cta [%0], %1, 0;" ::"r"(address),
               "l"(static_cast<std::uint64_t>(bytes)));
#else
  sim::st_bulk_zero(address, bytes, where);
#endif
}

}  // namespace tegula
