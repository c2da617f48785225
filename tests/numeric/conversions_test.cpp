#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <tegula/numeric/dtype.hpp>
#include <tegula/numeric/narrow_double.hpp>
#include <type_traits>

namespace tegula {
namespace {

float from_bits(std::uint32_t bits) { return __builtin_bit_cast(float, bits); }

/// What distinguishes the formats, said independently of NarrowFormat.
struct Format {
  int mantissa_bits;
  int least_exponent;  // of a normal value
  double greatest;     // finite
};

/// |x| rounded to `format` in double arithmetic; infinity if it rounds beyond the greatest
/// finite value.
double rounded(double x, Format format, Rounding rounding) {
  int const exponent =
      x == 0 ? format.least_exponent : std::max(std::ilogb(x), format.least_exponent);
  double const units = std::ldexp(x, format.mantissa_bits - exponent);
  double whole = rounding == Rounding::kNearestEven   ? std::nearbyint(units)
                 : rounding == Rounding::kNearestAway ? std::round(units)
                                                      : std::floor(units);
  double const value = std::ldexp(whole, exponent - format.mantissa_bits);
  if (value <= format.greatest) return value;
  return rounding == Rounding::kTowardZero ? format.greatest : HUGE_VAL;
}

/// Every 1009th binary32: all exponents, both signs, low bits of every kind.
template <class Body> void for_many_floats(Body body) {
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += 1009)
    body(from_bits(static_cast<std::uint32_t>(bits)));
}

template <Rounding R, class T>
void expect_rounds(Format format, T (*convert)(float), bool saturates) {
  long wrong = 0;
  float example = 0;
  for_many_floats([&](float x) {
    if (std::isnan(x)) return;
    double expected =
        std::isinf(x) ? HUGE_VAL : rounded(std::fabs(static_cast<double>(x)), format, R);
    if (saturates && expected > format.greatest) expected = format.greatest;
    double const got = to_float(convert(x));
    if (std::fabs(got) == expected && std::signbit(got) == std::signbit(x)) return;
    ++wrong;
    example = x;
  });
  EXPECT_EQ(wrong, 0) << "e.g. " << std::hexfloat << example << " gave "
                      << to_float(convert(example));
}

constexpr Format kHalf{10, -14, 65504.0};
constexpr Format kBfloat16{7, -126, 0x1.fep127};
constexpr Format kTf32{10, -126, 0x1.ffcp127};
constexpr Format kE4m3{3, -6, 448.0};
constexpr Format kE5m2{2, -14, 57344.0};
constexpr Format kE3m2{2, -2, 28.0};
constexpr Format kE2m3{3, 0, 7.5};
constexpr Format kE2m1{1, 0, 6.0};

TEST(Conversions, Binary16) {
  expect_rounds<Rounding::kNearestEven>(kHalf, to_half<Rounding::kNearestEven>, false);
  expect_rounds<Rounding::kTowardZero>(kHalf, to_half<Rounding::kTowardZero>, false);
}

TEST(Conversions, Bfloat16) {
  expect_rounds<Rounding::kNearestEven>(kBfloat16, to_bfloat16<Rounding::kNearestEven>, false);
  expect_rounds<Rounding::kTowardZero>(kBfloat16, to_bfloat16<Rounding::kTowardZero>, false);
}

TEST(Conversions, Tf32) {
  expect_rounds<Rounding::kTowardZero>(kTf32, to_tfloat32<Rounding::kTowardZero>, false);
  expect_rounds<Rounding::kNearestEven>(kTf32, to_tfloat32<Rounding::kNearestEven>, false);
  expect_rounds<Rounding::kNearestAway>(kTf32, to_tfloat32<Rounding::kNearestAway>, false);
}

TEST(Conversions, EightBits) {
  expect_rounds<Rounding::kNearestEven>(kE4m3, to_float_e4m3, true);
  expect_rounds<Rounding::kNearestEven>(kE5m2, to_float_e5m2, true);
}

TEST(Conversions, SixBits) {
  expect_rounds<Rounding::kNearestEven>(kE3m2, to_float_e3m2, true);
  expect_rounds<Rounding::kNearestEven>(kE2m3, to_float_e2m3, true);
}

// The least power of two that is not below |x|, of those that there are.
TEST(Conversions, ScalesOfPowersOfTwo) {
  long wrong = 0;
  for_many_floats([&](float x) {
    if (std::isnan(x)) return;
    double const magnitude = std::fabs(static_cast<double>(x));
    double const got = to_float(to_float_ue8m0(x));
    bool const right = magnitude <= 0x1p-127 ? got == 0x1p-127
                       : magnitude > 0x1p127 ? got == 0x1p127
                                             : got >= magnitude && got / 2 < magnitude &&
                                                   got == std::exp2(std::ilogb(got));
    wrong += right ? 0 : 1;
  });
  EXPECT_EQ(wrong, 0);
  for (int code = 0; code < 255; ++code)
    EXPECT_EQ(to_float(float_ue8m0{static_cast<std::uint8_t>(code)}), std::exp2(code - 127));
  EXPECT_TRUE(std::isnan(to_float(float_ue8m0{0xff})));
}

TEST(Conversions, ScalesWithoutASign) {
  for (int code = 0; code < 256; ++code) {
    auto const bits = static_cast<std::uint8_t>(code);
    float const expected = std::fabs(to_float(float_e4m3{bits})), got = to_float(float_ue4m3{bits});
    EXPECT_TRUE(got == expected || (std::isnan(got) && std::isnan(expected))) << code;
  }
  EXPECT_EQ(to_float(to_float_ue4m3(-3.0f)), 3.0f);
  EXPECT_EQ(to_float(to_float_ue4m3(1e9f)), 448.0f);
}

TEST(Conversions, FourBits) { expect_rounds<Rounding::kNearestEven>(kE2m1, to_float_e2m1, true); }

template <class T> void expect_rounds_once(Format format, T (*convert)(float), bool saturates) {
  auto const check = [&](double x) {
    double expected = rounded(x, format, Rounding::kNearestEven);
    if (saturates && expected > format.greatest) expected = format.greatest;
    EXPECT_EQ(to_float(convert(rounded_to_odd(x))), expected) << std::hexfloat << x;
    EXPECT_EQ(to_float(convert(rounded_to_odd(-x))), -expected) << std::hexfloat << x;
  };
  for (int exponent = format.least_exponent - format.mantissa_bits - 2;
       std::ldexp(1.0, exponent) < format.greatest; ++exponent) {
    for (int steps = 0; steps < 3; ++steps) {
      // Halfway between two values, and as little beside it as a double shows, or a float does not.
      double const unit =
          std::ldexp(1.0, std::max(exponent, format.least_exponent) - format.mantissa_bits);
      double const halfway = std::ldexp(1.0, exponent) + (steps + 0.5) * unit;
      for (double const beside : {0.0, 0x1p-52, -0x1p-52, 0x1p-30, -0x1p-30, 0x1p-24, -0x1p-24})
        check(halfway + beside * std::ldexp(1.0, exponent));
    }
  }
  check(format.greatest * (1 + std::ldexp(1.0, -format.mantissa_bits - 3)));
  check(1e300);
}

TEST(Conversions, OfDoublesRoundOnce) {
  EXPECT_EQ(to_float(to_half(rounded_to_odd(1 + 0x1p-11 + 0x1p-30))), 1 + 0x1p-10f);
  EXPECT_EQ(to_float(to_half(static_cast<float>(1 + 0x1p-11 + 0x1p-30))), 1.0f)
      << "twice, it is another number";
  expect_rounds_once<half>(kHalf, to_half, false);
  expect_rounds_once<bfloat16>(kBfloat16, to_bfloat16, false);
  expect_rounds_once<float_e4m3>(kE4m3, to_float_e4m3, true);
  expect_rounds_once<float_e5m2>(kE5m2, to_float_e5m2, true);
}

TEST(Conversions, NanIsCanonicalWhateverItsSignAndPayload) {
  for (std::uint32_t bits : {0x7f800001u, 0xff800001u, 0x7fc00000u, 0xffffffffu, 0x7fa5a5a5u}) {
    float const nan = from_bits(bits);
    EXPECT_EQ(to_half(nan).bits, 0x7fff);
    EXPECT_EQ(to_bfloat16(nan).bits, 0x7fff);
    EXPECT_EQ(to_float_e4m3(nan).bits, 0x7f);
    EXPECT_EQ(to_float_e5m2(nan).bits, 0x7f);
    EXPECT_EQ(to_float_e3m2(nan).bits, 0x1f);
    EXPECT_EQ(to_float_e2m3(nan).bits, 0x1f);
    EXPECT_EQ(to_float_e2m1(nan).bits, 0x7);
    EXPECT_EQ(to_float_ue8m0(nan).bits, 0xff);
    EXPECT_EQ(to_float_ue4m3(nan).bits, 0x7f);
  }
}

template <class T, class Bits> void expect_round_trip(int codes, T (*narrow)(float)) {
  for (int code = 0; code < codes; ++code) {
    T const x{static_cast<Bits>(code)};
    float const wide = to_float(x);
    if (std::isnan(wide)) continue;
    if (std::isinf(wide) && codes == 256) continue;  // 8-bit conversions saturate
    EXPECT_EQ(narrow(wide).bits, x.bits) << "code " << code << " is " << wide;
  }
}

TEST(Conversions, EveryCodeSurvivesWideningAndNarrowing) {
  expect_round_trip<half, std::uint16_t>(65536, to_half<Rounding::kNearestEven>);
  expect_round_trip<bfloat16, std::uint16_t>(65536, to_bfloat16<Rounding::kNearestEven>);
  expect_round_trip<float_e4m3, std::uint8_t>(256, to_float_e4m3);
  expect_round_trip<float_e5m2, std::uint8_t>(256, to_float_e5m2);
  expect_round_trip<float_e3m2, std::uint8_t>(64, to_float_e3m2);
  expect_round_trip<float_e2m3, std::uint8_t>(64, to_float_e2m3);
  expect_round_trip<float_e2m1, std::uint8_t>(16, to_float_e2m1);
  expect_round_trip<float_ue8m0, std::uint8_t>(256, to_float_ue8m0);
  expect_round_trip<float_ue4m3, std::uint8_t>(128, to_float_ue4m3);
}

// Straight from the fields: no code stands for an infinity or a NaN.
TEST(Conversions, EverySixBitValue) {
  auto const value = [](int code, int mantissa_bits, int bias) {
    int const exponent = (code & 31) >> mantissa_bits;
    double const fraction = std::ldexp(code & ((1 << mantissa_bits) - 1), -mantissa_bits);
    double const magnitude =
        exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias);
    return code < 32 ? magnitude : -magnitude;
  };
  for (int code = 0; code < 64; ++code) {
    EXPECT_EQ(to_float(float_e3m2{static_cast<std::uint8_t>(code)}), value(code, 2, 3));
    EXPECT_EQ(to_float(float_e2m3{static_cast<std::uint8_t>(code)}), value(code, 3, 1));
  }
}

TEST(Conversions, PairsOfFourBits) {
  for (int code = 0; code < 256; ++code) {
    float_e2m1x2 const pair{static_cast<std::uint8_t>(code)};
    EXPECT_EQ(pair[0].bits, code % 16);
    EXPECT_EQ(pair[1].bits, code / 16);
    EXPECT_EQ(pack(pair[0], pair[1]), code);
  }
}

TEST(Conversions, EveryE2m1Value) {
  float const values[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  for (int code = 0; code < 16; ++code) {
    EXPECT_EQ(to_float(float_e2m1{static_cast<std::uint8_t>(code)}),
              code < 8 ? values[code] : -values[code - 8]);
  }
}

TEST(Conversions, WorkInConstantExpressions) {
  static_assert(to_half(1.0f).bits == 0x3c00);
  static_assert(to_half(65520.0f).bits == 0x7c00);
  static_assert(to_half(-0.0f).bits == 0x8000);
  static_assert(to_float(half{1}) == 0x1p-24f);
  static_assert(from_float<bfloat16>(1.00390625f).bits == 0x3f80);  // a tie, to even
  static_assert(from_float<tfloat32>(1.0f + 0x1p-11f).bits == 0x3f800000u);
  static_assert(to_tfloat32<Rounding::kNearestAway>(1.0f + 0x1p-11f).bits == 0x3f802000u);
  static_assert(pack(to_half(1.0f), to_half(-2.0f)) == 0xc0003c00u);
  static_assert(dtype_of<bfloat16> == DType::bf16 && bits(DType::e2m1) == 4 &&
                bits(DType::tf32) == 32);
  static_assert(sizeof(type_of<DType::f16>) == 2);
}

/// A format is made of bits in braces, and of nothing in parentheses: a number is converted.
template <class T> constexpr bool is_made_of_braced_bits() {
  using Bits = decltype(T::bits);
  static_assert(T{1}.bits == 1 && T{}.bits == 0 && T{T{3}}.bits == 3);
  static_assert(std::is_trivial_v<T> && std::is_standard_layout_v<T> && sizeof(T) == sizeof(Bits));
  static_assert(!std::is_constructible_v<T, float> && !std::is_constructible_v<T, double>);
  static_assert(!std::is_constructible_v<T, Bits> && !std::is_constructible_v<T, int>);
  T const copied = {2};
  return T(copied).bits == 2;
}
template <half> struct OfHalf {};

TEST(Formats, AreMadeOfBracedBits) {
  static_assert(is_made_of_braced_bits<half>() && is_made_of_braced_bits<bfloat16>() &&
                is_made_of_braced_bits<tfloat32>());
  static_assert(is_made_of_braced_bits<float_e4m3>() && is_made_of_braced_bits<float_e5m2>() &&
                is_made_of_braced_bits<float_e3m2>() && is_made_of_braced_bits<float_e2m3>() &&
                is_made_of_braced_bits<float_e2m1>() && is_made_of_braced_bits<float_e2m1x2>());
  static_assert(is_made_of_braced_bits<float_ue8m0>() && is_made_of_braced_bits<float_ue4m3>());
  static_assert(std::is_same_v<OfHalf<half{1}>, OfHalf<to_half(0x1p-24f)>>);
}

TEST(DTypes, AreNamedAsInPtx) {
  EXPECT_STREQ(to_string(DType::f64), "f64");
  EXPECT_STREQ(to_string(DType::bf16), "bf16");
  EXPECT_STREQ(to_string(DType::b1), "b1");
  EXPECT_STREQ(to_string(DType::ue8m0), "ue8m0");
}

}  // namespace
}  // namespace tegula
