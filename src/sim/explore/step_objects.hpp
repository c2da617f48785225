#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

/// How steps name what they touch: bytes of memory by their addresses, and what is no memory by
/// addresses that no memory has.
namespace tegula::sim {

/// Bytes of a CTA's shared memory; of global memory (a CTA of -1), its address itself.
inline std::uint64_t shared_key(int cta, std::uint64_t address) {
  return static_cast<std::uint64_t>(cta + 1) << 56 | address;
}

/// What stands for the clusters that have not started, beside the bytes of memory.
inline constexpr std::uint64_t kLaunches = std::uint64_t{0xff} << 56;
/// Whether the requests of the cluster in a place are refused, likewise.
inline std::uint64_t refusal_key(int place) {
  return kLaunches + 1 + static_cast<std::uint64_t>(place);
}

/// What memory holds, of at most 16 bytes: up to 8 as they are, of more a hash.
inline std::uint64_t value_at(void const* memory, std::int64_t bytes) {
  std::uint64_t words[2] = {};
  std::memcpy(words, memory, static_cast<std::size_t>(std::min<std::int64_t>(bytes, 16)));
  return words[0] ^ words[1] * 0x9e3779b97f4a7c15ull;
}

}  // namespace tegula::sim
