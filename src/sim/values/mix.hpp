#pragma once

#include <cstdint>

namespace tegula::sim {

/// A hash of 64 bits: the finaliser of splitmix64 (Steele, Lea and Flood, 2014).
inline std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}
/// Of two.
inline std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  return mix(mix(a + 0x9e3779b97f4a7c15ull) ^ b);
}

}  // namespace tegula::sim
