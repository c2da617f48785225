#include "isa/tma_reduction.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "isa/combine.hpp"

namespace tegula::sim {

namespace {

/// The lesser of two, or the greater. Of floating-point values: a number rather than a NaN, and -0
/// < +0.
template <class T> T extreme(T a, T b, bool greater) {
  if constexpr (is_short_float_type<T>) {
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

/// What an element becomes that is `a`, and that `b` is brought to.
template <class T> T reduced(TmaReduce op, T a, T b) {
  if (op == TmaReduce::add) return sum(a, b);
  if (op == TmaReduce::min || op == TmaReduce::max) return extreme(a, b, op == TmaReduce::max);
  if constexpr (std::is_integral_v<T>) {
    switch (op) {
      case TmaReduce::inc:
        return a >= b ? T{0} : static_cast<T>(a + 1);
      case TmaReduce::dec:
        return a == 0 || a > b ? b : static_cast<T>(a - 1);
      case TmaReduce::bit_and:
        return a & b;
      case TmaReduce::bit_or:
        return a | b;
      case TmaReduce::bit_xor:
        return a ^ b;
      default:
        break;
    }
  }
  return a;
}

template <class T>
void reduce_all(TmaReduce op, unsigned char* into, unsigned char const* from, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    T a, b;
    std::memcpy(&a, into + i * sizeof(T), sizeof(T));
    std::memcpy(&b, from + i * sizeof(T), sizeof(T));
    T const result = reduced(op, a, b);
    std::memcpy(into + i * sizeof(T), &result, sizeof(T));
  }
}

}  // namespace

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
