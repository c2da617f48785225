#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <tegula/numeric/dtype.hpp>
#include <tegula/sim/arithmetic.hpp>

#include "arithmetic_tile.hpp"

namespace tegula::sim {
namespace {

using namespace detail;  // kZeroExponent, kLeastAlignment

constexpr std::uint32_t kNan = 0x7fffffffu;
constexpr std::uint32_t kInfinity = 0x7f800000u;
constexpr std::uint32_t kSign = 0x80000000u;
constexpr int kMostWgmmaK = 32;

/// What the hardware keeps of a sum: fraction bits below the largest exponent, and fraction bits of a
/// binary32 result.
struct Kept {
  int of_terms;
  int of_result;
};

constexpr Kept kept(WgmmaType type) { return element_bits(type) == 8 ? Kept{13, 13} : Kept{25, 23}; }

/// A factor or an addend: its value, and the exponent under which the hardware holds it.
struct Number {
  double value;
  int exponent;  // kZeroExponent for zero; meaningless for infinities and NaNs
};

Number number(float value, int least_exponent) {
  if (value == 0) return {value, kZeroExponent};
  if (!std::isfinite(value)) return {value, 0};
  return {value, std::max(std::ilogb(value), least_exponent)};
}

float factor_value(WgmmaType type, bool second, std::uint8_t const* bytes, int k) {
  std::uint16_t wide;
  switch (type) {
    case WgmmaType::bf16:
      std::memcpy(&wide, bytes + 2 * k, 2);
      return to_float(bfloat16{wide});
    case WgmmaType::f16:
      std::memcpy(&wide, bytes + 2 * k, 2);
      return to_float(half{wide});
    case WgmmaType::tf32: {
      std::uint32_t word;
      std::memcpy(&word, bytes + 4 * k, 4);
      return std::bit_cast<float>(word & ~0x1fffu);
    }
    case WgmmaType::e4m3_e4m3:
      return to_float(float_e4m3{bytes[k]});
    case WgmmaType::e5m2_e5m2:
      return to_float(float_e5m2{bytes[k]});
    case WgmmaType::e4m3_e5m2:
      return second ? to_float(float_e5m2{bytes[k]}) : to_float(float_e4m3{bytes[k]});
    default:  // e5m2_e4m3
      return second ? to_float(float_e4m3{bytes[k]}) : to_float(float_e5m2{bytes[k]});
  }
}

int factor_least_exponent(WgmmaType type, bool second) {
  switch (type) {
    case WgmmaType::bf16:
    case WgmmaType::tf32:
      return -126;
    case WgmmaType::f16:
    case WgmmaType::e5m2_e5m2:
      return -14;
    case WgmmaType::e4m3_e4m3:
      return -6;
    case WgmmaType::e4m3_e5m2:
      return second ? -14 : -6;
    default:  // e5m2_e4m3
      return second ? -6 : -14;
  }
}

/// sum * 2^unit toward zero, with `fraction_bits` of a binary32's 23.
std::uint32_t binary32_toward_zero(std::int64_t sum, int unit, int fraction_bits) {
  if (sum == 0) return 0;
  std::uint32_t const sign = sum < 0 ? kSign : 0;
  std::uint64_t const magnitude = static_cast<std::uint64_t>(sum < 0 ? -sum : sum);
  int const exponent = static_cast<int>(std::bit_width(magnitude)) - 1 + unit;
  if (exponent > 127) return sign | kInfinity;
  int const held = std::max(exponent, -126);
  // First to the bits that are kept, then to the place of a binary32's last bit.
  int const dropped = held - fraction_bits - unit;
  std::uint64_t const cut = dropped > 63 ? 0 : dropped > 0 ? magnitude >> dropped << dropped : magnitude;
  int const shift = held - 23 - unit;
  std::uint64_t const significand = shift > 63 ? 0 : shift >= 0 ? cut >> shift : cut << -shift;
  if (significand == 0) return 0;
  std::uint32_t const field = exponent < -126 ? 0 : static_cast<std::uint32_t>(exponent + 127);
  return sign | (field << 23) | (static_cast<std::uint32_t>(significand) & 0x7fffffu);
}

/// sum * 2^unit to nearest even. A zero result is positive.
std::uint32_t binary16_nearest(std::int64_t sum, int unit) {
  if (sum == 0) return 0;
  std::uint32_t const sign = sum < 0 ? 0x8000u : 0;
  std::uint64_t const magnitude = static_cast<std::uint64_t>(sum < 0 ? -sum : sum);
  int const exponent = std::max(static_cast<int>(std::bit_width(magnitude)) - 1 + unit, -14);
  int const shift = exponent - 10 - unit;
  if (shift > 62) return 0;
  std::uint64_t units = magnitude;
  if (shift > 0) {
    std::uint64_t const half = std::uint64_t{1} << (shift - 1);
    units = (magnitude + half - 1 + ((magnitude >> shift) & 1)) >> shift;
  } else {
    units <<= -shift;
  }
  std::uint64_t const code = (static_cast<std::uint64_t>(exponent + 14) << 10) + units;
  if (code == 0) return 0;
  return sign | static_cast<std::uint32_t>(std::min<std::uint64_t>(code, 0x7c00u));
}

/// One fused dot-add, any operands.
std::uint32_t dot_add(Number const* a, Number const* b, int k, Number c, Kept kept, bool half_result) {
  bool nan = std::isnan(c.value);
  bool positive = c.value == std::numeric_limits<double>::infinity();
  bool negative = c.value == -std::numeric_limits<double>::infinity();
  int largest = std::max(c.exponent, kLeastAlignment);
  for (int i = 0; i < k; ++i) {
    double const product = a[i].value * b[i].value;
    nan = nan || std::isnan(product);
    positive = positive || product == std::numeric_limits<double>::infinity();
    negative = negative || product == -std::numeric_limits<double>::infinity();
    largest = std::max(largest, a[i].exponent + b[i].exponent);
  }
  if (nan || (positive && negative)) return half_result ? 0x7fffu : kNan;
  if (positive || negative)
    return half_result ? (negative ? 0xfc00u : 0x7c00u) : kInfinity | (negative ? kSign : 0);
  // At most 46 bits apart from the scale, so that every intermediate value is exact.
  double const scale = std::ldexp(1.0, kept.of_terms - largest);
  std::int64_t sum = static_cast<std::int64_t>(c.value * scale);
  for (int i = 0; i < k; ++i) sum += static_cast<std::int64_t>(a[i].value * b[i].value * scale);
  int const unit = largest - kept.of_terms;
  return half_result ? binary16_nearest(sum, unit) : binary32_toward_zero(sum, unit, kept.of_result);
}

void wgmma_float(WgmmaConfig const& op, std::uint8_t const (*a)[kWgmmaRowBytes],
                 std::uint8_t const (*b)[kWgmmaRowBytes], bool scale_d, std::uint32_t* d) {
  int const k = wgmma_k(op.type);
  bool const half_result = op.accumulator == WgmmaAccumulator::f16;
  auto const decode = [&](std::uint8_t const* bytes, bool second, bool negate, Number* out) {
    for (int i = 0; i < k; ++i) {
      float const value = factor_value(op.type, second, bytes, i);
      out[i] = number(negate ? -value : value, factor_least_exponent(op.type, second));
    }
  };
  Number rows[kWgmmaM][kMostWgmmaK], column[kMostWgmmaK];
  for (int m = 0; m < kWgmmaM; ++m) decode(a[m], false, op.negate_a, rows[m]);
  for (int n = 0; n < op.n; ++n) {
    decode(b[n], true, op.negate_b, column);
    for (int m = 0; m < kWgmmaM; ++m) {
      std::uint32_t& result = d[m * op.n + n];
      Number c{0, kZeroExponent};
      if (scale_d) {
        c = half_result ? number(to_float(half{static_cast<std::uint16_t>(result)}), -14)
                        : number(std::bit_cast<float>(result), -126);
      }
      result = dot_add(rows[m], column, k, c, kept(op.type), half_result);
    }
  }
}

void wgmma_integer(WgmmaConfig const& op, std::uint8_t const (*a)[kWgmmaRowBytes],
                   std::uint8_t const (*b)[kWgmmaRowBytes], bool scale_d, std::uint32_t* d) {
  bool const a_signed = op.type == WgmmaType::s8_s8 || op.type == WgmmaType::s8_u8;
  bool const b_signed = op.type == WgmmaType::s8_s8 || op.type == WgmmaType::u8_s8;
  auto const value = [](std::uint8_t byte, bool is_signed) {
    return is_signed ? int{static_cast<std::int8_t>(byte)} : int{byte};
  };
  for (int m = 0; m < kWgmmaM; ++m) {
    for (int n = 0; n < op.n; ++n) {
      std::int32_t products = 0;
      for (int k = 0; k < kWgmmaRowBytes; ++k)
        products += value(a[m][k], a_signed) * value(b[n][k], b_signed);
      std::uint32_t& result = d[m * op.n + n];
      std::uint32_t const addend = scale_d ? result : 0;
      if (op.satfinite) {
        using Limits = std::numeric_limits<std::int32_t>;
        std::int64_t const exact = std::int64_t{static_cast<std::int32_t>(addend)} + products;
        result = static_cast<std::uint32_t>(std::clamp<std::int64_t>(exact, Limits::min(), Limits::max()));
      } else {
        result = addend + static_cast<std::uint32_t>(products);
      }
    }
  }
}

}  // namespace

void wgmma_tile(WgmmaConfig const& op, std::uint8_t const (*a)[kWgmmaRowBytes],
                std::uint8_t const (*b)[kWgmmaRowBytes], bool scale_d, std::uint32_t* d) {
  if (is_integer(op.type)) {
    wgmma_integer(op, a, b, scale_d, d);
  } else {
    wgmma_float(op, a, b, scale_d, d);
  }
}

}  // namespace tegula::sim
