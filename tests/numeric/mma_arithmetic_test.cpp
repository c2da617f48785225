#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <mma_cases.hpp>
#include <string>
#include <tegula/atom/mma_atom.hpp>
#include <tegula/sim/arithmetic.hpp>
#include <vector>

#include "arithmetic/tile.hpp"
#include "mma_oracle.hpp"
#include "thorough.hpp"

namespace tegula {
namespace {

using probe::CaseSet;
using sim::Generation;

struct Subject {
  MmaSpec op;
  Generation generation;
};

/// Number of the case's 128 results that differ from the oracle's; the first is described.
int differences(Subject subject, probe::MmaCase const& x, std::string& first) {
  std::uint32_t d[32][4] = {};
  sim::mma_sync_warp(subject.op, subject.generation, x.a, x.b, x.c, d);
  bool const half = subject.op.d == DType::f16;
  int wrong = 0;
  for (int row = 0; row < subject.op.m; ++row) {
    for (int column = 0; column < 8; ++column) {
      int const lane = row % 8 * 4 + column / 2;
      int const index = half ? row / 8 : row / 8 * 2 + column % 2;
      int const shift = half ? column % 2 * 16 : 0;
      std::uint32_t const mask = half ? 0xffffu : ~0u;
      std::uint32_t const got = (d[lane][index] >> shift) & mask;
      std::uint32_t const expected =
          oracle::mma_element(subject.op, subject.generation, x.a, x.b,
                              (x.c[lane][index] >> shift) & mask, row, column);
      if (got == expected) continue;
      if (wrong++ == 0) {
        char text[96];
        std::snprintf(text, sizeof text, "(%d, %d): %08x, oracle %08x", row, column, got, expected);
        first = text;
      }
    }
  }
  return wrong;
}

class MmaOps : public testing::TestWithParam<int> {};

TEST_P(MmaOps, EqualsTheOracleOnEverySet) {
  MmaSpec const op = probe::mma_subject(GetParam());
  for (Generation generation : {Generation::sm80, Generation::sm90, Generation::sm100}) {
    if (sim::spec_of(generation).compute_capability < op.sm) continue;
    for (int set = 0; set < probe::kCaseSets; ++set) {
      int const cases = thorough_or(150, 40);
      for (int index = 0; index < cases; ++index) {
        std::string first;
        int const wrong = differences(
            {op, generation}, probe::mma_case(GetParam(), static_cast<CaseSet>(set), index), first);
        ASSERT_EQ(wrong, 0) << "op " << GetParam() << ", generation "
                            << static_cast<int>(generation) << ", set " << probe::kCaseSetNames[set]
                            << ", case " << index << ", " << first;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Every, MmaOps, testing::Range(0, probe::kMmaSubjectCount));

/// D of an mma.sync of f64, by the (thread, value) layouts; `order(i)` is the i-th k.
template <class Order>
void multiply_f64(MmaAtom const& atom, double const (*a)[8], double const (*b)[4],
                  double const (*c)[4], double (*d)[4], Order order) {
  MmaSpec const& s = atom.spec;
  std::vector<double> of_a(static_cast<std::size_t>(s.m * s.k)),
      of_b(static_cast<std::size_t>(s.n * s.k));
  auto const each = [](Layout const& tv, auto&& visit) {
    for (int lane = 0; lane < 32; ++lane) {
      for (int i = 0; i < tv[1].size(); ++i)
        visit(lane, i, static_cast<std::size_t>(tv(coord(lane, i))));
    }
  };
  each(atom.a, [&](int lane, int i, std::size_t at) { of_a[at] = a[lane][i]; });
  each(atom.b, [&](int lane, int i, std::size_t at) { of_b[at] = b[lane][i]; });
  each(atom.c, [&](int lane, int i, std::size_t at) {
    double sum = c[lane][i];
    std::size_t const m = static_cast<std::size_t>(s.m), n = static_cast<std::size_t>(s.n);
    for (int step = 0; step < s.k; ++step) {
      auto const k = static_cast<std::size_t>(order(step));
      sum = std::fma(of_a[at % m + m * k], of_b[at / m + n * k], sum);
    }
    d[lane][i] = sum;
  });
}

TEST(MmaArithmetic, DoublesAreAChainOfFmaFromTheLeastK) {
  using enum DType;
  probe::Random random{7};
  // Near each other, so that nearly every rounding shows; with zeros, and with subnormals.
  auto const number = [&](int spread) {
    std::uint64_t const exponent = static_cast<std::uint64_t>(1023 - random.below(spread));
    double const value =
        std::bit_cast<double>((random.next() & 0x800fffffffffffffu) | exponent << 52);
    return random.one_in(12) ? 0.0 : value;
  };
  for (MmaSpec const op : {warp_mma(f64, f64, f64, 4, 8), warp_mma(f64, f64, 4),
                           warp_mma(f64, f64, 8), warp_mma(f64, f64, 16)}) {
    MmaAtom const atom = mma_atom(op);
    int reversed_differ = 0;
    for (int spread : {3, 40, 1023}) {
      for (int repeat = 0; repeat < thorough_or(400, 40); ++repeat) {
        double a[32][8], b[32][4], c[32][4], d[32][4], forth[32][4], back[32][4];
        for (int lane = 0; lane < 32; ++lane) {
          for (double& x : a[lane]) x = number(spread);
          for (double& x : b[lane]) x = number(spread);
          for (double& x : c[lane]) x = number(spread);
        }
        sim::mma_sync_warp(op, a, b, c, d);
        multiply_f64(atom, a, b, c, forth, [](int i) { return i; });
        multiply_f64(atom, a, b, c, back, [&](int i) { return op.k - 1 - i; });
        for (int lane = 0; lane < 32; ++lane) {
          for (int i = 0; i < op.m / 4; ++i) {
            ASSERT_EQ(std::bit_cast<std::uint64_t>(d[lane][i]),
                      std::bit_cast<std::uint64_t>(forth[lane][i]))
                << "k " << op.k << ", lane " << lane << ", " << d[lane][i] << ", "
                << forth[lane][i];
            reversed_differ += d[lane][i] != back[lane][i];
          }
        }
      }
    }
    EXPECT_GT(reversed_differ, 1000) << "the operands tell orders apart";
  }
}

TEST(MmaArithmetic, InfinitiesAndNansOfDoubles) {
  using enum DType;
  constexpr MmaSpec op = warp_mma(f64, f64, f64, 4, 8);
  double const infinity = std::numeric_limits<double>::infinity();
  double a[32][8] = {}, b[32][4] = {}, c[32][4] = {}, d[32][4];
  a[0][0] = infinity;                      // A(0, 0)
  b[0][0] = 1, b[4][0] = -2, b[5][0] = 1;  // B(0, 0), B(0, 1), B(1, 1)
  c[0][0] = -infinity, c[1][0] = -std::bit_cast<double>(0x7ff0000000000001u);
  sim::mma_sync_warp(op, a, b, c, d);
  EXPECT_EQ(std::bit_cast<std::uint64_t>(d[0][0]), 0x7ff8000000000000u) << "infinity - infinity";
  EXPECT_EQ(d[0][1], -infinity);
  EXPECT_EQ(std::bit_cast<std::uint64_t>(d[1][0]), 0x7ff8000000000000u) << "a NaN's payload";
  EXPECT_EQ(d[4][0], 0.0);
}

// An H100 has no tensor core for mma.sync of 8-bit floats, and sums what it widened exactly. What
// wgmma would keep, 13 bits below the largest, is lost there.
TEST(MmaArithmetic, EightBitFloatsKeepWhatWgmmaLoses) {
  using enum DType;
  std::uint32_t a[32][4] = {}, b[32][2] = {}, c[32][4] = {}, d[32][4];
  for (int lane = 0; lane < 4; ++lane) {
    a[lane][0] = 0x38383838u;  // e4m3: 1 of row 0, k 4 lane and the three after it
    b[lane][0] = 0x38383838u;
  }
  c[0][0] = std::bit_cast<std::uint32_t>(0x1p-14f);
  sim::mma_sync_warp(warp_mma(e4m3, f32, 32), Generation::sm90, a, b, c, d);
  EXPECT_EQ(std::bit_cast<float>(d[0][0]), 16 + 0x1p-14f);
}

// The instruction set is chosen at run time; what this machine does not choose is held to what
// it does.
TEST(MmaArithmetic, VectorWidthsAgree) {
  using namespace sim::detail;
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "no AVX2 here";
#endif
  probe::Random random{11};
  auto const number = [&](std::int32_t& magnitude, std::int32_t& exponent, std::int32_t& sign,
                          int bits, int spread) {
    magnitude = random.one_in(8) ? 0 : random.below(1 << bits);
    exponent = magnitude == 0 ? kZeroExponent : random.below(spread) - spread / 2;
    sign = -random.below(2);
  };
  for (int repeat = 0; repeat < 2000; ++repeat) {
    DotTile narrow{};
    int const spread = repeat % 3 == 0 ? 4 : repeat % 3 == 1 ? 30 : 280;
    for (int i = 0; i < kMostK; ++i) {
      for (int row = 0; row < kRows; ++row) {
        number(narrow.a_magnitude[row][i], narrow.a_exponent[row][i], narrow.a_sign[row][i], 11,
               spread);
      }
      for (int column = 0; column < kColumns; ++column) {
        number(narrow.b_magnitude[i][column], narrow.b_exponent[i][column],
               narrow.b_sign[i][column], 16, spread);
      }
    }
    for (int row = 0; row < kRows; ++row) {
      for (int column = 0; column < kColumns; ++column) {
        number(narrow.c_magnitude[row][column], narrow.c_exponent[row][column],
               narrow.c_sign[row][column], 26, spread);
      }
    }
    DotTile wide = narrow;
    int const k = 4 << (repeat % 3);
    SumRounding const rounding = repeat % 2 == 0 ? SumRounding::kTowardZero : SumRounding::kToOdd;
    reduce_tile_portable(narrow, 0, k, 25, rounding);
    reduce_tile_avx2(wide, 0, k, 25, rounding);
    ASSERT_EQ(std::memcmp(narrow.exceptional, wide.exceptional, sizeof narrow.exceptional), 0);
    ASSERT_EQ(std::memcmp(narrow.d, wide.d, sizeof narrow.d), 0)
        << "k " << k << ", repeat " << repeat;
  }
}

}  // namespace
}  // namespace tegula
