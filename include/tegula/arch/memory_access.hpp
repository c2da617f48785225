#pragma once

#include <cstdint>
#include <type_traits>

#include "tegula/macros.hpp"

namespace tegula {

/// What one load or store instruction moves: a trivially copyable value of 1, 2, 4, 8 or 16 bytes.
/// Its address is a multiple of its size.
template <class V>
concept MemoryValue = std::is_trivially_copyable_v<V> &&
    (sizeof(V) == 1 || sizeof(V) == 2 || sizeof(V) == 4 || sizeof(V) == 8 || sizeof(V) == 16);

/// What one access to global memory moves: as much, or 32 bytes (sm_100).
template <class V>
concept GlobalValue = MemoryValue<V> ||(std::is_trivially_copyable_v<V> && sizeof(V) == 32);

/// A value's bits in the registers that a vector load or store names.
template <int Bytes> struct RegisterBits { std::uint32_t word[Bytes / 4]; };
template <> struct RegisterBits<1> { std::uint8_t byte; };
template <> struct RegisterBits<2> { std::uint16_t half; };

/// The same bits as another type of the same size.
template <class To, class From> TEGULA_HOST_DEVICE constexpr To bits_as(From const& from) {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, from);
}

}  // namespace tegula
