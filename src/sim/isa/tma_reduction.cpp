#include "isa/tma_reduction.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "tegula/numeric/bfloat16.hpp"
#include "tegula/numeric/half.hpp"

namespace tegula::sim {

namespace {

template <class T>
constexpr bool is_short_float = std::is_same_v<T, half> || std::is_same_v<T, bfloat16>;

template <class T> T sum(T a, T b) {
  if constexpr (std::is_same_v<T, float>) {
    float const result = a + b;
    return std::isnan(result) ? std::bit_cast<float>(0x7fffffffu) : result;
  } else if constexpr (is_short_float<T>) {
    // binary32 has more than twice the digits and two more: rounding twice is rounding once.
    return from_float<T>(to_float(a) + to_float(b));
  } else if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
  } else {
    static_assert(std::is_same_v<T, double>);
    // A NaN stays as it is, a signalling one too; of two, shared memory's (H100). Assumed: that of
    // inf - inf.
    if (std::isnan(b)) return b;
    if (std::isnan(a)) return a;
    double const result = a + b;
    return std::isnan(result) ? std::bit_cast<double>(std::uint64_t{0xfff8} << 48) : result;
  }
}

/// The lesser of two, or the greater. Of floating-point values: a number rather than a NaN, and -0
/// < +0.
template <class T> T extreme(T a, T b, bool greater) {
  if constexpr (is_short_float<T>) {
    float const x = to_float(a), y = to_float(b);
    if (std::isnan(x) && std::isnan(y))
      return from_float<T>(std::numeric_limits<float>::quiet_NaN());
    if (std::isnan(x)) return b;
    if (std::isnan(y)) return a;
    bool const less = x < y || (x == y && std::signbit(x) && !std::signbit(y));
    return less == greater ? b : a;
  } else {
    return (a < b) == greater ? b : a;
  }
}

template <class T>
void reduce_all(TmaReduce op, unsigned char* into, unsigned char const* from, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    T a, b;
    std::memcpy(&a, into + i * sizeof(T), sizeof(T));
    std::memcpy(&b, from + i * sizeof(T), sizeof(T));
    T const result = op == TmaReduce::add ? sum(a, b) : extreme(a, b, op == TmaReduce::max);
    std::memcpy(into + i * sizeof(T), &result, sizeof(T));
  }
}

}  // namespace

bool can_reduce(TmaReduce op, DType type) {
  switch (type) {
    case DType::f16:
    case DType::bf16:
    case DType::s32:
    case DType::u32:
    case DType::u64:
      return true;
    case DType::s64:
      return op != TmaReduce::add;
    case DType::f32:
    case DType::tf32:
    case DType::f64:
      return op == TmaReduce::add;
    default:
      return false;
  }
}

void reduce(TmaReduce op, DType type, unsigned char* into, unsigned char const* from,
            std::size_t count) {
  switch (type) {
    case DType::f16:
      return reduce_all<half>(op, into, from, count);
    case DType::bf16:
      return reduce_all<bfloat16>(op, into, from, count);
    case DType::s32:
      return reduce_all<std::int32_t>(op, into, from, count);
    case DType::u32:
      return reduce_all<std::uint32_t>(op, into, from, count);
    case DType::s64:
      return reduce_all<std::int64_t>(op, into, from, count);
    case DType::u64:
      return reduce_all<std::uint64_t>(op, into, from, count);
    case DType::f32:
    case DType::tf32:
      return reduce_all<float>(op, into, from, count);
    case DType::f64:
      return reduce_all<double>(op, into, from, count);
    default:
      return;
  }
}

}  // namespace tegula::sim
