// The arithmetic of tcgen05.mma with block scales, as published (Xie et al., arXiv 2511.10909, and
// the authors' MMA-Sim), against an oracle in doubles, which carry every intermediate value
// exactly. No sm_100 has confirmed it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <tegula/atom/scaled_mma_spec.hpp>
#include <tegula/sim/arithmetic.hpp>
#include <vector>

#include "mma_oracle.hpp"
#include "random_operands.hpp"
#include "thorough.hpp"

namespace tegula {
namespace {

using Rows = std::uint8_t[128][sim::kWgmmaRowBytes];
using oracle::draw_addend;
using oracle::draw_rows;
using oracle::Random;
using oracle::Spread;

double scale_of(DType type, std::uint8_t code) {
  return type == DType::ue8m0 ? to_float(float_ue8m0{code}) : to_float(float_ue4m3{code});
}
int scale_exponent(DType type, double scale) {
  return std::max(std::ilogb(scale), type == DType::ue8m0 ? -127 : -6);
}
/// Element k of a row.
double element_of(ScaledMmaSpec const& op, DType type, std::uint8_t const* row, int k) {
  if (op.kind != ScaledMmaKind::mxf8f6f4) return to_float(float_e2m1x2{row[k / 2]}[k % 2]);
  return oracle::value_of(type, oracle::packed_code(type, row, k));
}

/// A term of the sum, and the exponent that counts for its alignment.
struct Term {
  double value;
  int exponent;
};

/// One element of D, all of whose terms are finite.
std::uint32_t expected(ScaledMmaSpec const& op, std::uint8_t const* a, std::uint32_t scale_a,
                       std::uint8_t const* b, std::uint32_t scale_b, float c) {
  std::vector<Term> terms;
  if (c != 0) terms.push_back({c, std::max(std::ilogb(c), -126)});
  bool const one_by_one = op.kind == ScaledMmaKind::mxf8f6f4;
  int const together = one_by_one ? 1 : 16;
  double const sign = op.negate_a != op.negate_b ? -1 : 1;
  for (int first = 0; first < extent_k(op); first += together) {
    int const byte = 8 * (first / op.block);
    double const x = scale_of(op.scale, static_cast<std::uint8_t>(scale_a >> byte));
    double const y = scale_of(op.scale, static_cast<std::uint8_t>(scale_b >> byte));
    double sum = 0;
    int exponent = 0;
    for (int k = first; k < first + together; ++k) {
      double const of_a = element_of(op, op.a, a, k), of_b = element_of(op, op.b, b, k);
      sum += sign * of_a * of_b;
      if (one_by_one && sum != 0)
        exponent = oracle::held_exponent(of_a, oracle::least_exponent(op.a)) +
                   oracle::held_exponent(of_b, oracle::least_exponent(op.b));
    }
    if (x == 0 || y == 0 || (one_by_one && sum == 0)) continue;
    terms.push_back(
        {sum * x * y, exponent + scale_exponent(op.scale, x) + scale_exponent(op.scale, y)});
  }
  int largest = -133;
  for (Term const& term : terms) largest = std::max(largest, term.exponent);
  int const kept = one_by_one ? 25 : 35;
  double whole = 0;
  for (Term const& term : terms) whole += std::trunc(std::ldexp(term.value, kept - largest));
  return oracle::binary32_toward_zero(std::ldexp(whole, largest - kept));
}

std::uint8_t draw_scale(Random& random, DType type, Spread spread) {
  std::uint32_t const r = random.next();
  if (type == DType::ue4m3) {
    if (spread == Spread::widest) return static_cast<std::uint8_t>(r % 127);
    return static_cast<std::uint8_t>((spread == Spread::near ? 0x34 : 0x18) + r % 24);
  }
  if (spread == Spread::widest) return static_cast<std::uint8_t>(r % 255);
  int const reach = spread == Spread::near ? 3 : 20;
  return static_cast<std::uint8_t>(127 - reach + static_cast<int>(r % (2u * reach + 1)));
}

struct Kind {
  DType a, b, scale;
  int block;
};

class EveryScaledKind : public testing::TestWithParam<Kind> {};

TEST_P(EveryScaledKind, EqualsTheOracle) {
  Kind const& kind = GetParam();
  constexpr int n = 32;
  ScaledMmaSpec op = scaled_mma(kind.a, kind.b, kind.scale, kind.block, n);
  static Rows a, b;
  std::int64_t results = 0;
  int const cases = thorough_or(85, 4);  // of each spread: a million results, or some
  for (Spread const spread : {Spread::near, Spread::far, Spread::widest}) {
    for (int number = 0; number < cases; ++number) {
      Random random(static_cast<std::uint64_t>(number + 1000 * static_cast<int>(spread)));
      op.negate_a = number % 3 == 1, op.negate_b = number % 4 > 1;
      draw_rows(random, op.a, a);
      draw_rows(random, op.b, b);
      std::uint32_t scale_a[128] = {}, scale_b[n] = {};
      for (auto* const words : {scale_a, scale_b}) {
        for (int row = 0; row < (words == scale_a ? 128 : n); ++row) {
          for (int i = 0; i < 4; ++i)
            words[row] |= std::uint32_t{draw_scale(random, op.scale, spread)} << 8 * i;
        }
      }
      bool const accumulate = number % 4 != 3;
      std::vector<std::uint32_t> c(128 * n);
      for (std::uint32_t& x : c) x = __builtin_bit_cast(std::uint32_t, draw_addend(random, spread));
      std::vector<std::uint32_t> d = c;
      sim::scaled_mma_tile(op, a, scale_a, b, scale_b, accumulate, d.data());
      for (int row = 0; row < 128; ++row) {
        for (int column = 0; column < n; ++column, ++results) {
          auto const i = static_cast<std::size_t>(row * n + column);
          float const addend = accumulate ? __builtin_bit_cast(float, c[i]) : 0.0f;
          ASSERT_EQ(d[i], expected(op, a[row], scale_a[row], b[column], scale_b[column], addend))
              << to_string(op.kind) << ", spread " << static_cast<int>(spread) << ", case "
              << number << ", row " << row << ", column " << column;
        }
      }
    }
  }
  if (thorough()) {
    EXPECT_GE(results, 1'000'000);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, EveryScaledKind,
                         testing::Values(Kind{DType::e4m3, DType::e4m3, DType::ue8m0, 32},
                                         Kind{DType::e5m2, DType::e4m3, DType::ue8m0, 32},
                                         Kind{DType::e2m3, DType::e3m2, DType::ue8m0, 32},
                                         Kind{DType::e3m2, DType::e2m1, DType::ue8m0, 32},
                                         Kind{DType::e2m1, DType::e4m3, DType::ue8m0, 32},
                                         Kind{DType::e2m1, DType::e2m1, DType::ue8m0, 32},
                                         Kind{DType::e2m1, DType::e2m1, DType::ue8m0, 16},
                                         Kind{DType::e2m1, DType::e2m1, DType::ue4m3, 16}),
                         [](auto const& info) {
                           return std::string(to_string(info.param.a)) + "_" +
                                  to_string(info.param.b) + "_" + to_string(info.param.scale) +
                                  "_" + std::to_string(info.param.block);
                         });

float first_result(ScaledMmaSpec const& op, Rows const& a, std::uint32_t scale_a, Rows const& b,
                   std::uint32_t scale_b, float c) {
  std::uint32_t of_a[128] = {scale_a}, of_b[8] = {scale_b};
  std::vector<std::uint32_t> d(128 * 8);
  d[0] = __builtin_bit_cast(std::uint32_t, c);
  sim::scaled_mma_tile(op, a, of_a, b, of_b, true, d.data());
  return __builtin_bit_cast(float, d[0]);
}

TEST(ScaledArithmetic, KnownSums) {
  ScaledMmaSpec const nv = scaled_mma(DType::e2m1, DType::e2m1, DType::ue4m3, 16, 8);
  Rows a = {}, b = {};
  for (int i = 0; i < 32; ++i) a[0][i] = b[0][i] = 0x77;  // 6, in all places
  std::uint32_t const one = 0x38383838;                   // scales of 1
  EXPECT_EQ(first_result(nv, a, one, b, one, 0), 64 * 36.0f);
  EXPECT_EQ(first_result(nv, a, 0x38383840, b, one, 1), 80 * 36.0f + 1) << "the first scale is 2";
  EXPECT_EQ(first_result(nv, a, 0, b, one, -3), -3.0f);
  ScaledMmaSpec const mx = scaled_mma(DType::e4m3, DType::e4m3, DType::ue8m0, 32, 8);
  Rows x = {}, y = {};
  x[0][0] = to_float_e4m3(3).bits, y[0][0] = to_float_e4m3(5).bits;
  EXPECT_EQ(first_result(mx, x, 127 - 10, y, 127 + 4, 0), std::ldexp(15.0f, -6));
}

TEST(ScaledArithmetic, InfinitiesAndNans) {
  ScaledMmaSpec const mx = scaled_mma(DType::e5m2, DType::e4m3, DType::ue8m0, 32, 8);
  ScaledMmaSpec const mx4 = scaled_mma(DType::e2m1, DType::e2m1, DType::ue8m0, 32, 8);
  Rows a = {}, b = {};
  EXPECT_TRUE(std::isnan(first_result(mx, a, 0xff, b, 127, 1))) << "a scale is NaN";
  EXPECT_TRUE(std::isnan(first_result(mx4, a, 0x7f7f, b, 0xff7f, 1)));
  a[0][0] = 0x7c;  // an infinity
  EXPECT_TRUE(std::isnan(first_result(mx, a, 127, b, 127, 1))) << "times zero";
  b[0][0] = to_float_e4m3(-2).bits;
  EXPECT_EQ(first_result(mx, a, 127, b, 127, 1), -HUGE_VALF);
  ScaledMmaSpec negated = mx;
  negated.negate_b = true;
  EXPECT_EQ(first_result(negated, a, 127, b, 127, 1), HUGE_VALF);
  EXPECT_TRUE(std::isnan(first_result(mx, a, 127, b, 127, HUGE_VALF)));
}

}  // namespace
}  // namespace tegula
