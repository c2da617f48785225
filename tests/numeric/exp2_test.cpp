#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <tegula/numeric/exp2.hpp>

namespace tegula {
namespace {

/// |exp2_polynomial(x) - 2^x| in units of the last place of the binary32 nearest below 2^x.
double error_in_ulp(float x) {
  double const exact = std::exp2(static_cast<double>(x));
  double const ulp = std::ldexp(1.0, std::ilogb(exact) - 23);
  return std::fabs(exp2_polynomial(x) - exact) / ulp;
}

// The result is 2^n p(f), where p(f) depends on f alone and the multiplication is exact; f is x -
// n. All mantissas of x from -1/16 to -128 are tried, each binade giving its own grid of f; nearer
// to 0 the polynomial is 1 + f c1 to within an ulp and a sample is enough.
TEST(Exp2Polynomial, IsWithinItsBoundForEveryMantissa) {
  double worst = 0;
  float at = 0;
  for (int exponent = -30; exponent <= 6; ++exponent) {
    std::uint32_t const step = exponent < -4 ? 61 : 1;
    for (std::uint32_t mantissa = 0; mantissa < (1u << 23); mantissa += step) {
      float const x = __builtin_bit_cast(
          float, 0x80000000u | (static_cast<std::uint32_t>(exponent + 127) << 23) | mantissa);
      if (x < -126.0f) break;
      double const error = error_in_ulp(x);
      if (error > worst) {
        worst = error;
        at = x;
      }
    }
  }
  EXPECT_LE(worst, 1.02) << "at " << std::hexfloat << at;
  EXPECT_GE(worst, 0.98) << "the stated bound is no longer tight";
}

TEST(Exp2Polynomial, IsWithinItsBoundAboveZero) {
  for (int i = 0; i < (1 << 20); ++i)
    ASSERT_LE(error_in_ulp(static_cast<float>(i) * 0x1p-13f * 0.99f), 1.02);
}

TEST(Exp2Polynomial, IsExactAtIntegers) {
  for (int n = -126; n <= 127; ++n)
    EXPECT_EQ(exp2_polynomial(static_cast<float>(n)), std::ldexp(1.0f, n));
  EXPECT_EQ(exp2_polynomial(-0.0f), 1.0f);
}

TEST(Exp2Polynomial, FlushesWhatIsBelowTheLeastNormal) {
  for (float x : {std::nextafter(-126.0f, -200.0f), -126.25f, -126.5f, -127.0f, -127.5f, -149.0f,
                  -1e30f, -std::numeric_limits<float>::infinity()}) {
    EXPECT_EQ(__builtin_bit_cast(std::uint32_t, exp2_polynomial(x)), 0u) << x;
  }
}

TEST(Exp2Polynomial, KeepsNan) {
  EXPECT_TRUE(std::isnan(exp2_polynomial(std::numeric_limits<float>::quiet_NaN())));
}

}  // namespace
}  // namespace tegula
