#pragma once

#include <cstdint>
#include <cstring>

#include "tegula/sim/arithmetic.hpp"

/// Elements of 6 and 4 bits: in shared memory 16 of them lie in the first 12 or 8 of 16 bytes, in
/// tensor memory each in a byte, its container. PTX ISA, "Packing formats of elements in Tensor and
/// Shared memory".
namespace tegula::sim {

/// The lowest bit of an element in its container: e2m1 lies as an e2m3 whose last two bits are 0.
constexpr int lowest_bit_of_container(int bits) { return bits == 4 ? 2 : 0; }

/// 16 packed elements to 16 containers, whose other bits are 0.
inline void to_containers(int bits, std::uint8_t const* packed, std::uint8_t* containers) {
  for (int i = 0; i < 16; ++i) {
    int const first = i * bits;
    unsigned const pair =
        packed[first / 8] | (first % 8 + bits > 8 ? packed[first / 8 + 1] << 8 : 0);
    containers[i] = static_cast<std::uint8_t>((pair >> first % 8 & ((1u << bits) - 1))
                                              << lowest_bit_of_container(bits));
  }
}

/// 16 containers to 16 packed elements, and zeros behind them; in place, too. Other bits of a
/// container do not count.
inline void from_containers(int bits, std::uint8_t const* containers, std::uint8_t* packed) {
  std::uint8_t result[16] = {};
  for (int i = 0; i < 16; ++i) {
    unsigned const element = containers[i] >> lowest_bit_of_container(bits) & ((1u << bits) - 1);
    int const first = i * bits;
    result[first / 8] = static_cast<std::uint8_t>(result[first / 8] | element << first % 8);
    if (first % 8 + bits > 8)
      result[first / 8 + 1] =
          static_cast<std::uint8_t>(result[first / 8 + 1] | element >> (8 - first % 8));
  }
  for (int i = 0; i < 16; ++i) packed[i] = result[i];
}

/// A row of A in tensor memory, of elements of so many bits, as it lies in shared memory.
inline void gather_a(int bits, void const* lane, std::uint8_t (&row)[kWgmmaRowBytes]) {
  std::memcpy(row, lane, kWgmmaRowBytes);
  for (int piece = 0; bits < 8 && piece < kWgmmaRowBytes; piece += 16)
    from_containers(bits, row + piece, row + piece);
}

}  // namespace tegula::sim
