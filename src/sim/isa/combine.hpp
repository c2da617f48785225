#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "tegula/arch/atomic_spec.hpp"
#include "tegula/numeric/dtype.hpp"

/// What atomics and reductions compute.
namespace tegula::sim {

template <class T>
inline constexpr bool is_short_float_type = std::is_same_v<T, half> || std::is_same_v<T, bfloat16>;

/// A sum, rounded to nearest even in its own format, with subnormals. NaNs are what an H100's TMA
/// made of them; that atomics do the same is assumed.
template <class T> T sum(T a, T b) {
  if constexpr (std::is_same_v<T, float>) {
    float const result = a + b;
    return std::isnan(result) ? std::bit_cast<float>(0x7fffffffu) : result;
  } else if constexpr (is_short_float_type<T>) {
    // binary32 has more than twice the digits and two more: rounding twice is rounding once.
    return from_float<T>(to_float(a) + to_float(b));
  } else if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
  } else {
    static_assert(std::is_same_v<T, double>);
    // A NaN stays as it is, a signalling one too; of two, the operand's (H100: shared memory's).
    // Assumed: that of inf - inf.
    if (std::isnan(b)) return b;
    if (std::isnan(a)) return a;
    double const result = a + b;
    return std::isnan(result) ? std::bit_cast<double>(std::uint64_t{0xfff8} << 48) : result;
  }
}

/// A sum of f32 in global memory: subnormal operands and sums are zeros of their sign. PTX ISA,
/// atom.
inline float flushed_sum(float a, float b) {
  auto const flushed = [](float x) {
    return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x;
  };
  return flushed(sum(flushed(a), flushed(b)));
}

/// The bits of one element of an atomic, in the lower bytes.
struct AtomicBits {
  std::uint64_t low;
  std::uint64_t high;
  bool operator==(AtomicBits const&) const = default;
};

inline AtomicBits load_word(void const* address, AtomicType type) {
  AtomicBits word{};
  std::memcpy(&word, address, static_cast<std::size_t>(bytes_of(type)));
  return word;
}
inline void store_word(void* address, AtomicType type, AtomicBits const& word) {
  std::memcpy(address, &word, static_cast<std::size_t>(bytes_of(type)));
}

namespace detail {

template <class T> T combined_as(AtomicOp op, T old, T value) {
  if (op == AtomicOp::add) return sum(old, value);
  if constexpr (std::is_integral_v<T>) {
    switch (op) {
      case AtomicOp::min:
        return std::min(old, value);
      case AtomicOp::max:
        return std::max(old, value);
      case AtomicOp::bit_and:
        return old & value;
      case AtomicOp::bit_or:
        return old | value;
      case AtomicOp::bit_xor:
        return old ^ value;
      case AtomicOp::inc:
        return old >= value ? T{0} : static_cast<T>(old + 1);
      case AtomicOp::dec:
        return old == 0 || old > value ? value : static_cast<T>(old - 1);
      default:
        break;
    }
  }
  return old;
}

}  // namespace detail

/// What an operation leaves where `old` is; `flushes`: a sum of f32 makes zeros of subnormals.
inline AtomicBits combined(AtomicOp op, AtomicType type, AtomicBits const& old,
                           AtomicBits const& value, AtomicBits const& expected = {},
                           bool flushes = false) {
  if (op == AtomicOp::exchange) return value;
  if (op == AtomicOp::compare_and_swap) return old == expected ? value : old;
  auto const as = [&]<class T>(T) {
    T a, b;
    std::memcpy(&a, &old, sizeof(T));
    std::memcpy(&b, &value, sizeof(T));
    T result;
    if constexpr (std::is_same_v<T, float>) {
      result = flushes ? flushed_sum(a, b) : sum(a, b);
    } else {
      result = detail::combined_as(op, a, b);
    }
    AtomicBits bits{};
    std::memcpy(&bits, &result, sizeof(T));
    return bits;
  };
  switch (type) {
    case AtomicType::s32:
      return as(std::int32_t{});
    case AtomicType::f32:
      return as(float{});
    case AtomicType::s64:
      return as(std::int64_t{});
    case AtomicType::f64:
      return as(double{});
    case AtomicType::f16:
      return as(half{});
    case AtomicType::bf16:
      return as(bfloat16{});
    case AtomicType::u64:
    case AtomicType::b64:
      return as(std::uint64_t{});
    default:
      return as(std::uint32_t{});
  }
}

}  // namespace tegula::sim
