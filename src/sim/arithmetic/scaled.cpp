#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <tegula/numeric/dtype.hpp>
#include <tegula/sim/arithmetic.hpp>

#include "arithmetic/packed.hpp"
#include "arithmetic/rounding.hpp"
#include "arithmetic/tile.hpp"

/// tcgen05.mma with block scales: Xie et al., arXiv 2511.10909, and the authors' MMA-Sim. Operands
/// of kind mxf8f6f4 are summed as those of 8 bits without scales, whose exponents are added to the
/// products'. Those of mxf4 and mxf4nvf4 are summed exactly by 16, and such a sum is aligned by the
/// exponents of its scales alone.
namespace tegula::sim {
namespace {

using namespace detail;

constexpr int kMostK = 64;
constexpr int kMostRows = 256;
constexpr int kGroup = 16;  // products of e2m1 that are summed exactly
/// Fraction bits that are kept below the largest exponent.
constexpr int kFractionOfMxf8f6f4 = 25, kFractionOfMxf4 = 35;

/// significand 2^(exponent - 3); a zero has kZeroExponent.
struct Number {
  std::int32_t significand = 0;
  std::int32_t exponent = kZeroExponent;
  bool nan = false, infinite = false;
};

/// What one row of A, or of B, is made of.
struct Row {
  Number element[kMostK / 2];  // of mxf8f6f4
  std::int16_t half[kMostK];   // of the others: the element times two
  Number scale[4];
  bool special = false;  // it has an infinity or a NaN
};

Number number(float value, int least_exponent) {
  if (std::isnan(value)) return {.nan = true};
  if (std::isinf(value)) return {.significand = value < 0 ? -1 : 1, .infinite = true};
  if (value == 0) return {};
  int const exponent = std::max(std::ilogb(value), least_exponent);
  return {static_cast<std::int32_t>(std::ldexp(value, 3 - exponent)), exponent};
}

Number element(DType type, std::uint8_t code) {
  switch (type) {
    case DType::e4m3:
      return number(to_float(float_e4m3{code}), -6);
    case DType::e5m2:
      return number(to_float(float_e5m2{code}), -14);
    case DType::e2m3:
      return number(to_float(float_e2m3{code}), 0);
    case DType::e3m2:
      return number(to_float(float_e3m2{code}), -2);
    default:  // e2m1
      return number(to_float(float_e2m1{code}), 0);
  }
}
Number scale(DType type, std::uint8_t code) {
  return type == DType::ue8m0 ? number(to_float(float_ue8m0{code}), -127)
                              : number(to_float(float_ue4m3{code}), -6);
}

Row decode(ScaledMmaSpec const& op, DType type, bool negate, std::uint8_t const* bytes,
           std::uint32_t scales_) {
  Row row;
  int const sign = negate ? -1 : 1;
  for (int i = 0; i < scales(op); ++i) {
    row.scale[i] = scale(op.scale, static_cast<std::uint8_t>(scales_ >> 8 * i));
    row.special = row.special || row.scale[i].nan;
  }
  for (int i = 0; i < kWgmmaRowBytes; ++i) {
    if (op.kind != ScaledMmaKind::mxf8f6f4) {
      float_e2m1x2 const pair{bytes[i]};
      for (int j = 0; j < 2; ++j)
        row.half[2 * i + j] = static_cast<std::int16_t>(2 * sign * to_float(pair[j]));
    } else {
      row.element[i] = element(type, packed_code(type, bytes, i));
      row.element[i].significand *= sign;
      row.special = row.special || row.element[i].nan || row.element[i].infinite;
    }
  }
  return row;
}

/// significand 2^(exponent - fraction), in units of 2^(largest - kept) and toward zero.
std::int64_t aligned(std::int64_t significand, int exponent, int fraction, int largest, int kept) {
  if (significand == 0) return 0;
  int const dropped = largest - exponent;
  if (dropped > 63) return 0;
  std::int64_t const magnitude = std::abs(significand) << (kept - fraction) >> dropped;
  return significand < 0 ? -magnitude : magnitude;
}

/// The accumulator, of a binary32 with 23 fraction bits.
struct Addend {
  std::int64_t significand = 0;
  int exponent = kZeroExponent;
  explicit Addend(float value) {
    if (value == 0) return;
    exponent = std::max(std::ilogb(value), -126);
    significand = static_cast<std::int64_t>(std::ldexp(value, 23 - exponent));
  }
};

std::uint32_t dot_add_mxf8f6f4(ScaledMmaSpec const& op, Row const& a, Row const& b, float c) {
  Addend const addend(c);
  int const of_scales = a.scale[0].exponent + b.scale[0].exponent;
  int largest = std::max(kLeastAlignment, addend.exponent);
  for (int i = 0; i < extent_k(op); ++i)
    largest = std::max(largest, a.element[i].exponent + b.element[i].exponent + of_scales);
  std::int64_t sum = aligned(addend.significand, addend.exponent, 23, largest, kFractionOfMxf8f6f4);
  for (int i = 0; i < extent_k(op); ++i)
    sum += aligned(std::int64_t{a.element[i].significand} * b.element[i].significand,
                   a.element[i].exponent + b.element[i].exponent + of_scales, 6, largest,
                   kFractionOfMxf8f6f4);
  return binary32_toward_zero(sum, largest - kFractionOfMxf8f6f4, 23);
}

std::uint32_t dot_add_mxf4(ScaledMmaSpec const& op, Row const& a, Row const& b, float c) {
  Addend const addend(c);
  int const per_scale = op.block / kGroup;
  int largest = std::max(kLeastAlignment, addend.exponent);
  for (int i = 0; i < scales(op); ++i)
    largest = std::max(largest, a.scale[i].exponent + b.scale[i].exponent);
  std::int64_t sum = aligned(addend.significand, addend.exponent, 23, largest, kFractionOfMxf4);
  for (int group = 0; group < kMostK / kGroup; ++group) {
    std::int32_t products = 0;  // times four
    for (int i = kGroup * group; i < kGroup * (group + 1); ++i) products += a.half[i] * b.half[i];
    Number const& x = a.scale[group / per_scale];
    Number const& y = b.scale[group / per_scale];
    sum += aligned(std::int64_t{products} * x.significand * y.significand, x.exponent + y.exponent,
                   8, largest, kFractionOfMxf4);
  }
  return binary32_toward_zero(sum, largest - kFractionOfMxf4, 23);
}

/// A result among whose terms is an infinity or a NaN.
std::uint32_t special_result(ScaledMmaSpec const& op, Row const& a, Row const& b, float c) {
  bool nan = std::isnan(c);
  bool positive = std::isinf(c) && c > 0, negative = std::isinf(c) && c < 0;
  for (int i = 0; i < scales(op); ++i) nan = nan || a.scale[i].nan || b.scale[i].nan;
  for (int i = 0; op.kind == ScaledMmaKind::mxf8f6f4 && i < extent_k(op); ++i) {
    Number const& x = a.element[i];
    Number const& y = b.element[i];
    if (!x.infinite && !y.infinite) {
      nan = nan || x.nan || y.nan;
      continue;
    }
    nan = nan || x.nan || y.nan || x.significand == 0 || y.significand == 0;
    ((x.significand < 0) == (y.significand < 0) ? positive : negative) = true;
  }
  if (nan || (positive && negative)) return kSign - 1;
  return negative ? kSign | kInfinity : kInfinity;
}

}  // namespace

void scaled_mma_tile(ScaledMmaSpec const& op, std::uint8_t const (*a)[kWgmmaRowBytes],
                     std::uint32_t const* scale_a, std::uint8_t const (*b)[kWgmmaRowBytes],
                     std::uint32_t const* scale_b, bool accumulate, std::uint32_t* d) {
  thread_local Row columns[kMostRows];  // too large for a fiber's stack
  for (int n = 0; n < op.n; ++n) columns[n] = decode(op, op.b, op.negate_b, b[n], scale_b[n]);
  for (int m = 0; m < op.m; ++m) {
    Row const row = decode(op, op.a, op.negate_a, a[m], scale_a[m]);
    for (int n = 0; n < op.n; ++n) {
      std::uint32_t& result = d[m * op.n + n];
      float const c = accumulate ? std::bit_cast<float>(result) : 0.0f;
      if (row.special || columns[n].special || !std::isfinite(c)) {
        result = special_result(op, row, columns[n], c);
      } else if (op.kind == ScaledMmaKind::mxf8f6f4) {
        result = dot_add_mxf8f6f4(op, row, columns[n], c);
      } else {
        result = dot_add_mxf4(op, row, columns[n], c);
      }
    }
  }
}

}  // namespace tegula::sim
