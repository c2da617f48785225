#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "ported_kernels.hpp"
#include "run_kernel.hpp"
#include "run_schedules.hpp"

/// The kernels of ported_kernels.hpp at every schedule, against plain loops, in double precision
/// where they round.
namespace tegula {
namespace {

using namespace ported_kernels;

/// Calls check(in, out) for each schedule and several seeds of the input.
template <class Kernel, class F> void at_every_schedule(F check) {
  for (std::uint32_t const seed : {1u, 2u, 3u}) {
    auto const in = words(Kernel::in_words, seed);
    for_each_schedule([&](sim::Options const& options) {
      sim::Machine machine(options);
      SCOPED_TRACE(schedule_text(options));
      check(in, run_kernel<Kernel>(machine, in));
    });
  }
}
using Read = std::vector<std::uint32_t> const&;
float number(std::uint32_t word) { return small_number(word); }
float result(std::uint32_t word) { return std::bit_cast<float>(word); }

template <int Width> void check_scan() {
  at_every_schedule<SegmentedScan<Width>>([](Read in, Read out) {
    std::uint32_t sum = 0;
    for (std::size_t lane = 0; lane < 32; ++lane) {
      sum = (lane % Width == 0 ? 0 : sum) + in[lane];
      EXPECT_EQ(out[lane], sum) << "lane " << lane;
    }
  });
}

TEST(Ported, ScansOfSegments) {
  check_scan<4>();
  check_scan<16>();
  check_scan<32>();
}

TEST(Ported, APassOfARadixSortIsStable) {
  at_every_schedule<RadixPass>([](Read in, Read out) {
    auto expected = in;
    std::stable_sort(expected.begin(), expected.end(),
                     [](std::uint32_t a, std::uint32_t b) { return a % 16 < b % 16; });
    EXPECT_EQ(out, expected);
  });
}

TEST(Ported, CompactionKeepsTheOrder) {
  at_every_schedule<Compact>([](Read in, Read out) {
    std::vector<std::uint32_t> expected = {0};
    for (std::uint32_t const v : in) {
      if (v % 2 != 0) expected.push_back(v);
    }
    expected[0] = static_cast<std::uint32_t>(expected.size() - 1);
    EXPECT_GT(expected[0], 100u);
    expected.resize(out.size());
    EXPECT_EQ(out, expected);
  });
}

TEST(Ported, LayerNormIsWithinAFewUlp) {
  at_every_schedule<LayerNorm>([](Read in, Read out) {
    constexpr std::size_t width = LayerNorm::width;
    for (std::size_t row = 0; row < LayerNorm::rows; ++row) {
      double sum = 0, squares = 0;
      for (std::size_t i = 0; i < width; ++i) sum += number(in[width * row + i]);
      double const mean = sum / width;
      for (std::size_t i = 0; i < width; ++i)
        squares += std::pow(number(in[width * row + i]) - mean, 2);
      double const scale = 1 / std::sqrt(squares / width + 1e-5);
      for (std::size_t i = 0; i < width; ++i) {
        double const product =
            (number(in[width * row + i]) - mean) * scale * number(in[width * LayerNorm::rows + i]);
        double const exact = product + number(in[width * (LayerNorm::rows + 1) + i]);
        // The mean's error reaches every element: of numbers up to 32.
        EXPECT_NEAR(result(out[width * row + i]), exact, 0x1p-20 * (std::fabs(product) + 32));
      }
    }
  });
}

TEST(Ported, RotaryEmbeddingAtPositionsOfUpToAMillion) {
  at_every_schedule<Rope>([](Read in, Read out) {
    for (std::size_t row = 0; row < Rope::rows; ++row) {
      auto const* const of_row = in.data() + row * (1 + Rope::width);
      double const position = of_row[0] % 1000000;
      for (std::size_t i = 0; i < 32; ++i) {
        // The angle is the kernel's, in f32; from there on everything is good to an ulp or so.
        float const frequency = exp_polynomial(static_cast<float>(i) * -0.287823141f);
        EXPECT_NEAR(frequency, std::pow(10000.0, -static_cast<double>(i) / 32), 2e-6 * frequency);
        double const angle = static_cast<float>(static_cast<float>(position) * frequency);
        float const x = number(of_row[1 + i]), y = number(of_row[33 + i]);
        double const tolerance = 0x1p-22 * (std::fabs(x) + std::fabs(y));
        EXPECT_NEAR(result(out[Rope::width * row + i]), x * std::cos(angle) - y * std::sin(angle),
                    tolerance);
        EXPECT_NEAR(result(out[Rope::width * row + 32 + i]),
                    x * std::sin(angle) + y * std::cos(angle), tolerance);
      }
    }
  });
}

TEST(Ported, GeluByTheErrorFunction) {
  at_every_schedule<GeluByErf>([](Read in, Read out) {
    for (std::size_t i = 0; i < in.size(); ++i) {
      double const x = number(in[i]) * 0.25;
      double const exact = x / 2 * (1 + std::erf(x / std::sqrt(2)));
      EXPECT_NEAR(result(out[i]), exact, 0x1p-22 * std::max(1e-3, std::fabs(x))) << x;
    }
  });
}

}  // namespace
}  // namespace tegula
