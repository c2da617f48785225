#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <mma_cases.hpp>
#include <string>
#include <tegula/sim/arithmetic.hpp>

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
  for (int row = 0; row < 16; ++row) {
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
  for (Generation generation : {Generation::sm80, Generation::sm90}) {
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
