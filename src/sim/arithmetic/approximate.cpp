#include <array>
#include <bit>
#include <cstdint>
#include <tegula/sim/arithmetic.hpp>

#include "arithmetic/tables.hpp"

// Each function is a table of quadratics in fixed point (Oberman and Siu, "A High-Performance
// Area-Efficient Multifunction Interpolator", ARITH 2005, describe such a unit). What had to be
// found is the square: it is summed from bit products, and those in columns below a certain weight
// are never formed.
namespace tegula::sim {
namespace {

using detail::Quadratic;

constexpr std::uint32_t kNan = 0x7fffffffu;
constexpr std::uint32_t kInfinity = 0x7f800000u;
constexpr std::uint32_t kSign = 0x80000000u;

/// The square of a `Bits`-bit number as the unit forms it, divided by 2^Column: t^2 is the sum over
/// bits of t_j 2^(2j) and over pairs j < k of t_j t_k 2^(j+k+1), and every term below 2^Column is
/// left out.
template <int Bits, int Column> class TruncatedSquare {
 public:
  static constexpr std::int32_t of(std::uint32_t t) {
    // A bit j < kLow meets only bits k >= Column - 1 - j: together they contribute t >>
    // (Column - 1 - j). The rest is tabulated.
    std::int32_t sum = kHigh[t >> kLow];
    for (int j = Column - Bits; j < kLow; ++j) {
      sum += static_cast<std::int32_t>(((t >> j) & 1) * (t >> (Column - 1 - j)));
    }
    return sum;
  }

 private:
  static constexpr int kLow = 8;
  static_assert(2 * (kLow - 1) < Column && Column - 1 - (kLow - 1) > kLow - 1);

  static constexpr std::array<std::int32_t, (1 << (Bits - kLow))> tabulate() {
    std::array<std::int32_t, (1 << (Bits - kLow))> table{};
    for (std::uint32_t high = 0; high < table.size(); ++high) {
      std::int32_t sum = 0;
      for (int j = kLow; j < Bits; ++j) {
        if (((high >> (j - kLow)) & 1) == 0) continue;
        if (2 * j >= Column) sum += 1 << (2 * j - Column);
        for (int k = j + 1; k < Bits; ++k) {
          if (((high >> (k - kLow)) & 1) != 0 && j + k + 1 >= Column)
            sum += 1 << (j + k + 1 - Column);
        }
      }
      table[high] = sum;
    }
    return table;
  }
  static constexpr std::array<std::int32_t, (1 << (Bits - kLow))> kHigh = tabulate();
};

struct Parts {
  std::uint32_t bits;
  explicit Parts(float x) : bits(std::bit_cast<std::uint32_t>(x)) {}
  std::uint32_t magnitude() const { return bits & ~kSign; }
  std::uint32_t sign() const { return bits & kSign; }
  std::uint32_t mantissa() const { return bits & 0x7fffffu; }
  int exponent() const { return static_cast<int>(magnitude() >> 23) - 127; }
  bool is_nan() const { return magnitude() > kInfinity; }
  bool is_infinite() const { return magnitude() == kInfinity; }
  bool is_zero_or_subnormal() const { return magnitude() < 0x00800000u; }
};

float as_float(std::uint32_t bits) { return std::bit_cast<float>(bits); }

/// sign, 2^exponent, and a significand of 24 bits (its leading one included); a result below the
/// least normal is flushed to zero.
float assembled(std::uint32_t sign, int exponent, std::uint32_t significand) {
  if (exponent < -126) return as_float(sign);
  return as_float(sign | (static_cast<std::uint32_t>(exponent + 127) << 23) |
                  (significand & 0x7fffffu));
}

/// magnitude * 2^-fraction_bits, cut to 24 significant bits; magnitude is not zero.
float normalized(std::uint32_t sign, std::uint64_t magnitude, int fraction_bits) {
  int const leading = std::bit_width(magnitude) - 1;
  std::uint64_t const significand =
      leading > 23 ? magnitude >> (leading - 23) : magnitude << (23 - leading);
  return assembled(sign, leading - fraction_bits, static_cast<std::uint32_t>(significand));
}

/// 2^(fraction / 2^23) in units of 2^-23.
std::uint32_t ex2_significand(std::uint32_t fraction) {
  std::uint32_t const t = fraction & 0x1ffffu;
  Quadratic const& q = detail::kEx2[fraction >> 17];
  std::int64_t const sum = (std::int64_t{q.c0} << 13) + 6114 + std::int64_t{q.c1} * t +
                           q.c2 * TruncatedSquare<17, 19>::of(t);
  return static_cast<std::uint32_t>(sum >> 15);
}

/// By the thread of the host.
thread_local std::int64_t computed = 0;

}  // namespace

std::int64_t special_functions_computed() { return computed; }

float ex2_approx_ftz(float x) {
  ++computed;
  Parts const p(x);
  if (p.is_nan()) return as_float(kNan);
  bool const negative = p.sign() != 0;
  if (p.exponent() >= 7) {  // |x| >= 128
    return as_float(negative ? 0 : kInfinity);
  }
  // |x| cut to 23 fraction bits. A negative argument is complemented bit by bit, not negated: 2^-23
  // less than it should be, save where the fraction is zero.
  std::uint32_t const significand = p.mantissa() | 0x800000u;
  int const shift = p.exponent();
  std::uint32_t const fixed = shift >= 0    ? significand << shift
                              : shift < -23 ? 0
                                            : significand >> -shift;
  int whole = static_cast<int>(fixed >> 23);
  std::uint32_t fraction = fixed & 0x7fffffu;
  if (negative) {
    whole = -whole;
    if (fraction != 0) {
      --whole;
      fraction ^= 0x7fffffu;
    }
  }
  return assembled(0, whole, ex2_significand(fraction));
}

float rcp_approx_ftz(float x) {
  ++computed;
  Parts const p(x);
  if (p.is_nan()) return as_float(kNan);
  if (p.is_zero_or_subnormal()) return as_float(p.sign() | kInfinity);
  if (p.is_infinite()) return as_float(p.sign());
  if (p.mantissa() == 0) return assembled(p.sign(), -p.exponent(), 0);
  std::uint32_t const t = p.mantissa() & 0xffffu;
  Quadratic const& q = detail::kRcp[p.mantissa() >> 16];
  std::int64_t const sum = (std::int64_t{q.c0} << 13) + 2023 + std::int64_t{q.c1} * t +
                           q.c2 * TruncatedSquare<16, 17>::of(t);
  return assembled(p.sign(), -p.exponent() - 1, static_cast<std::uint32_t>(sum >> 15));
}

float rsqrt_approx_ftz(float x) {
  ++computed;
  Parts const p(x);
  if (p.is_nan()) return as_float(kNan);
  if (p.is_zero_or_subnormal()) return as_float(p.sign() | kInfinity);
  if (p.sign() != 0) return as_float(kNan);
  if (p.is_infinite()) return 0.0f;
  int const odd = p.exponent() & 1;
  int const half = (p.exponent() - odd) / 2;
  if (p.mantissa() == 0 && odd == 0) return assembled(0, -half, 0);
  std::uint32_t const t = p.mantissa() & 0x1ffffu;
  Quadratic const& q = detail::kRsqrt[(p.mantissa() >> 17) + 64 * static_cast<std::uint32_t>(odd)];
  std::int64_t const sum = (std::int64_t{q.c0} << 14) - 1 + std::int64_t{q.c1} * t +
                           4 * q.c2 * TruncatedSquare<17, 19>::of(t);
  return assembled(0, -half - 1, static_cast<std::uint32_t>(sum >> 16));
}

float lg2_approx_ftz(float x) {
  ++computed;
  Parts const p(x);
  if (p.is_nan()) return as_float(kNan);
  if (p.is_zero_or_subnormal()) return as_float(kSign | kInfinity);
  if (p.sign() != 0) return as_float(kNan);
  if (p.is_infinite()) return as_float(kInfinity);
  if (p.magnitude() == 0x3f800000u) return 0.0f;
  std::uint32_t const t = p.mantissa() & 0x1ffffu;
  Quadratic const& q = detail::kLg2[p.mantissa() >> 17];
  std::int64_t const fraction = (std::int64_t{q.c0} << 12) + 837 + std::int64_t{q.c1} * t +
                                2 * q.c2 * TruncatedSquare<17, 19>::of(t);  // units of 2^-38
  std::int64_t const fixed =
      (std::int64_t{p.exponent()} * (std::int64_t{1} << 36)) + (fraction >> 2);
  std::uint64_t const magnitude =
      static_cast<std::uint64_t>(fixed < 0 ? ~fixed : fixed);  // complemented bit by bit
  return normalized(fixed < 0 ? kSign : 0, magnitude, 36);
}

float tanh_approx(float x) {
  ++computed;
  Parts const p(x);
  if (p.is_nan()) return as_float(kNan);
  if (p.exponent() < -8) return x;
  if (p.exponent() > 2) return as_float(p.sign() | 0x3f800000u);
  detail::TanhBinade const& binade = detail::kTanhBinades[p.exponent() + 8];
  std::uint32_t const reduced =
      p.mantissa() >> (6 - binade.segment_bits);  // the segment, then 17 bits; the rest is cut
  std::uint32_t const t = reduced & 0x1ffffu;
  Quadratic const& q = detail::kTanh[binade.first + (reduced >> 17)];
  std::int64_t const sum = (std::int64_t{q.c0} << binade.c0_shift) + std::int64_t{q.c1} * t +
                           std::int64_t{2} * q.c2 * TruncatedSquare<17, 19>::of(t);
  return normalized(p.sign(), static_cast<std::uint64_t>(sum), binade.fraction_bits);
}

}  // namespace tegula::sim
