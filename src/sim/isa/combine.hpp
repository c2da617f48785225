#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "tegula/sim/hooks.hpp"

/// What atomics and reductions compute.
namespace tegula::sim {

constexpr int bytes_of(AtomicType type) {
  return type == AtomicType::u32 || type == AtomicType::s32 || type == AtomicType::f32 ? 4 : 8;
}

inline std::uint64_t load_word(void const* address, AtomicType type) {
  std::uint64_t word = 0;
  std::memcpy(&word, address, static_cast<std::size_t>(bytes_of(type)));
  return word;
}
inline void store_word(void* address, AtomicType type, std::uint64_t word) {
  std::memcpy(address, &word, static_cast<std::size_t>(bytes_of(type)));
}

/// What an operation leaves where `old` is, as bits in the lower bytes.
inline std::uint64_t combined(AtomicOp op, AtomicType type, std::uint64_t old, std::uint64_t value,
                              std::uint64_t expected) {
  auto const lesser = [&](auto a, auto b) {
    return (a < b) == (op == AtomicOp::min) ? old : value;
  };
  auto const s32 = [](std::uint64_t x) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(x));
  };
  auto const f32 = [](std::uint64_t x) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(x));
  };
  switch (op) {
    case AtomicOp::add:
      if (type == AtomicType::f32) return std::bit_cast<std::uint32_t>(f32(old) + f32(value));
      if (type == AtomicType::f64)
        return std::bit_cast<std::uint64_t>(std::bit_cast<double>(old) +
                                            std::bit_cast<double>(value));
      return bytes_of(type) == 4 ? static_cast<std::uint32_t>(old + value) : old + value;
    case AtomicOp::min:
    case AtomicOp::max:
      if (type == AtomicType::s32) return lesser(s32(old), s32(value));
      if (type == AtomicType::s64)
        return lesser(static_cast<std::int64_t>(old), static_cast<std::int64_t>(value));
      return lesser(old, value);
    case AtomicOp::exchange:
      return value;
    case AtomicOp::compare_and_swap:
      return old == expected ? value : old;
  }
  return old;
}

}  // namespace tegula::sim
