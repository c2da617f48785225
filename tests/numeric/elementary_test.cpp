#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <tegula/numeric/erf.hpp>
#include <tegula/numeric/exp.hpp>
#include <tegula/numeric/log.hpp>
#include <tegula/numeric/sin_cos.hpp>

#include "thorough.hpp"

/// The elementary functions' distance from exact, over one in 509 of the floats of their domain,
/// one in three where the test is to be thorough. (The bounds are of all of them:
/// docs/arithmetic.md.) "Exact" is the host's libm in double precision.
namespace tegula {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }

/// The largest error of f over the floats in [from, to], in units of the last place of the exact
/// result; at least that of the least normal float.
template <class F, class Exact> double worst_error(F f, Exact exact, float from, float to) {
  double worst = 0;
  std::uint32_t const step = thorough() ? 3 : 509;
  for (std::uint64_t code = 0; code < (std::uint64_t{1} << 32); code += step) {
    auto const x = std::bit_cast<float>(static_cast<std::uint32_t>(code));
    if (!(x >= from && x <= to)) continue;
    double const right = exact(static_cast<double>(x));
    double const ulp = std::ldexp(1.0, std::max(std::ilogb(right), -126) - 23);
    double const error =
        std::fabs(static_cast<double>(f(x)) - right) / (right == 0 ? 0x1p-149 : ulp);
    worst = std::isnan(error) ? kInfinity : std::max(worst, error);
  }
  return worst;
}
/// A bound that is met and tight.
template <class F, class Exact>
void expect_bound(double bound, F f, Exact exact, float from, float to) {
  double const worst = worst_error(f, exact, from, to);
  EXPECT_LE(worst, bound);
  EXPECT_GE(worst, bound * 0.85) << "the stated bound is no longer tight";
}

TEST(Elementary, ExpIsWithinItsBound) {
  expect_bound(
      0.9, exp_polynomial, [](double x) { return std::exp(x); }, -120.0f, 88.7228317f);
  EXPECT_EQ(bits(exp_polynomial(88.7228394f)), bits(kInfinity));
  EXPECT_EQ(exp_polynomial(0.0f), 1.0f);
  EXPECT_EQ(exp_polynomial(-0.0f), 1.0f);
  EXPECT_EQ(bits(exp_polynomial(kInfinity)), bits(kInfinity));
  EXPECT_EQ(bits(exp_polynomial(-kInfinity)), 0u);
  EXPECT_EQ(bits(exp_polynomial(-std::numeric_limits<float>::quiet_NaN())), 0x7fffffffu);
  EXPECT_EQ(bits(exp_polynomial(-103.97f)), 1u);  // the least subnormal float
}

TEST(Elementary, LogIsWithinItsBound) {
  expect_bound(
      1.0, log_polynomial, [](double x) { return std::log(x); }, 0x1p-149f,
      std::numeric_limits<float>::max());
  EXPECT_EQ(bits(log_polynomial(1.0f)), 0u);
  EXPECT_EQ(bits(log_polynomial(0.0f)), bits(-kInfinity));
  EXPECT_EQ(bits(log_polynomial(-0.0f)), bits(-kInfinity));
  EXPECT_EQ(bits(log_polynomial(kInfinity)), bits(kInfinity));
  for (float const x : {-0x1p-149f, -1.0f, -kInfinity, std::numeric_limits<float>::quiet_NaN()})
    EXPECT_EQ(bits(log_polynomial(x)), 0x7fffffffu) << x;
}

TEST(Elementary, SinAndCosAreWithinTheirBound) {
  expect_bound(
      1.5, [](float x) { return sin_cos_polynomial(x).sin; }, [](double x) { return std::sin(x); },
      -0x1p30f, 0x1p30f);
  expect_bound(
      1.5, [](float x) { return sin_cos_polynomial(x).cos; }, [](double x) { return std::cos(x); },
      -0x1p30f, 0x1p30f);
}

TEST(Elementary, SinAndCosNextToMultiplesOfAQuarterTurn) {
  // The floats on both sides of multiples of pi/2, where one of the two is smallest.
  double worst = 0;
  for (int n = 1; n < (1 << 22); n += thorough() ? 1 : 61) {
    auto const near = static_cast<float>(n * 1.5707963267948966);
    for (float const x : {std::nextafter(near, 0.0f), near, std::nextafter(near, kInfinity)}) {
      SinCos const turned = sin_cos_polynomial(x);
      for (auto const& [found, right] : {std::pair<double, double>{turned.sin, std::sin(double{x})},
                                         {turned.cos, std::cos(double{x})}})
        worst = std::max(worst, std::fabs(found - right) / std::ldexp(1.0, std::ilogb(right) - 23));
    }
  }
  EXPECT_LE(worst, 1.5);
}

TEST(Elementary, SinAndCosOfZerosAndOfWhatIsTooLarge) {
  EXPECT_EQ(bits(sin_cos_polynomial(0.0f).sin), 0u);
  EXPECT_EQ(bits(sin_cos_polynomial(-0.0f).sin), 0x80000000u);
  EXPECT_EQ(sin_cos_polynomial(-0.0f).cos, 1.0f);
  for (float const x : {std::nextafter(0x1p30f, kInfinity), -kInfinity, kInfinity,
                        std::numeric_limits<float>::quiet_NaN()}) {
    EXPECT_EQ(bits(sin_cos_polynomial(x).sin), 0x7fffffffu) << x;
    EXPECT_EQ(bits(sin_cos_polynomial(x).cos), 0x7fffffffu) << x;
  }
}

TEST(Elementary, ErfIsWithinItsBound) {
  expect_bound(
      1.15, erf_polynomial, [](double x) { return std::erf(x); }, -10.0f, 10.0f);
  EXPECT_EQ(erf_polynomial(kInfinity), 1.0f);
  EXPECT_EQ(erf_polynomial(-std::numeric_limits<float>::max()), -1.0f);
  EXPECT_EQ(bits(erf_polynomial(-0.0f)), 0x80000000u);
  EXPECT_EQ(bits(erf_polynomial(-std::numeric_limits<float>::quiet_NaN())), 0x7fffffffu);
}

}  // namespace
}  // namespace tegula
