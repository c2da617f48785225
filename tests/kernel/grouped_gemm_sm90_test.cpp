// Block-scaled and grouped GEMMs: each configuration against float64, over the edges of its tiles
// and of groups; what no group has must not be touched, and must not count.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "grouped_gemm_problem.hpp"
#include "thorough.hpp"

namespace tegula {
namespace {

/// A problem of the types and scales of a configuration, which it is constrained to.
GroupedProblem problem_for(int number) {
  GroupedGemmSm90Config const& c = configuration(grouped_gemm_sm90, number);
  return {.in = c.a,
          .in_b = c.b,
          .out = c.out,
          .scales = c.scales,
          .constraints = {.configuration = number, .clusters = 2}};
}

class EveryGroupedConfiguration : public testing::TestWithParam<int> {
 protected:
  Machine const machine = test_machine();
  GroupedGemmSm90Config const& c = configuration(grouped_gemm_sm90, GetParam());
  GroupedProblem p = problem_for(GetParam());
};
INSTANTIATE_TEST_SUITE_P(GroupedGemm, EveryGroupedConfiguration,
                         testing::Range(0,
                                        static_cast<int>(configurations(grouped_gemm_sm90).size())),
                         [](auto const& tested) { return fmt::format("{}", tested.param); });

// Two tiles and some of M and N, three blocks and some of K.
TEST_P(EveryGroupedConfiguration, OverTheEdgesOfItsTiles) {
  p.m = c.block_m + 9, p.n = c.block_n * c.cluster_n + 11, p.k = 3 * block_k(c) + 9, p.padding = 2;
  expect_right(machine, p);
}

// Whole vectors, C, and a ring that comes round.
TEST_P(EveryGroupedConfiguration, OfAlignedRowsOntoC) {
  p.m = 70, p.n = c.block_n + 8, p.k = block_k(c) * (stages(c) + 1), p.c = true;
  expect_right(machine, p);
  p.in_place = true;
  expect_right(machine, p);
}

TEST_P(EveryGroupedConfiguration, OfGroupsOfRows) {
  p.grouping = Grouping::contiguous, p.n = c.block_n + 40, p.k = 2 * block_k(c) + 16;
  p.sizes = {3, 0, c.block_m + 1, 0, 0, 64, 1};
  expect_right(machine, p);
  p.padded_to = 128;  // what others ask for
  expect_right(machine, p);
  p.grouping = Grouping::masked, p.m = c.block_m + 20, p.padded_to = 1;
  expect_right(machine, p);
}

TEST_P(EveryGroupedConfiguration, OfGroupsOfK) {
  if (c.scales == Scales::rows_by_blocks || c.cluster_n > 1)
    GTEST_SKIP() << "it computes no groups of k";
  p.grouping = Grouping::k, p.m = c.block_m + 5, p.n = c.block_n + 24;
  p.sizes = {block_k(c) + 3, 0, 2 * block_k(c), 1, block_k(c) / 2 + 5};
  expect_right(machine, p);
  p.c = true, p.padding = 3, p.apart = 7;
  expect_right(machine, p);
}

GroupedProblem scaled_problem() { return {.m = 40, .n = 72, .k = 144}; }

// Every group in one window of a warp, beyond one, and all rows in one of many.
TEST(GroupedGemm, OfManyGroups) {
  Machine const machine = test_machine();
  for (Grouping const grouping : {Grouping::contiguous, Grouping::masked}) {
    for (int const groups : {1, 31, 32, 33, 70}) {
      GroupedProblem p = scaled_problem();
      p.grouping = grouping, p.m = 5, p.n = 24, p.k = 32, p.constraints.clusters = 3;
      p.sizes.assign(static_cast<std::size_t>(groups), 0);
      for (int g = 0; g < groups; ++g) p.sizes[static_cast<std::size_t>(g)] = g * 7 % 5;
      expect_right(machine, p);
      for (int& size : p.sizes) size = 0;
      p.sizes[static_cast<std::size_t>(groups / 2)] = 5;
      expect_right(machine, p);
      p.sizes[static_cast<std::size_t>(groups / 2)] = 0;
      expect_right(machine, p);
    }
  }
}

// 300 random splits: rows and K, every grouping, sizes from none to several tiles.
TEST(GroupedGemm, OfRandomSplits) {
  Machine const machine = test_machine();
  std::mt19937_64 random(16);
  auto const draw = [&](int most) {
    return static_cast<int>(random() % static_cast<unsigned>(most + 1));
  };
  for (int i = 0; i < thorough_or(300, 60); ++i) {
    GroupedProblem p{.seed = static_cast<std::uint64_t>(i) + 1};
    bool const by_k = i % 3 == 2;
    p.grouping = by_k ? Grouping::k : i % 3 == 1 ? Grouping::masked : Grouping::contiguous;
    if (i % 2 == 1) p.in = DType::bf16;
    if (by_k) p.out = DType::f32;
    p.m = 1 + draw(by_k ? 70 : 90), p.n = 1 + draw(50), p.k = 1 + draw(150);
    p.sizes.resize(1 + static_cast<std::size_t>(draw(9)));
    for (int& size : p.sizes)
      size = draw(3) == 0 ? 0 : p.grouping == Grouping::masked ? draw(p.m) : draw(draw(1) ? 90 : 9);
    p.apart = p.grouping == Grouping::masked ? 0 : draw(1) * draw(9);
    p.c = draw(1) == 0;
    p.constraints.clusters = 1 + draw(3);
    expect_right(machine, p);
    if (HasFailure()) return;
  }
}

float one(std::mt19937_64&) { return 1.0f; }

// What the 13 bits of the tensor core's sums of fp8 do over a long K, and that promotion undoes it.
// The last bit of a sum of 2^14 is 2: of every product of ones that is added to it nothing is left.
TEST(GroupedGemm, PromotionKeepsWhatThirteenBitsLose) {
  Machine const machine = test_machine();
  constexpr int k = 1 << 16;
  GroupedProblem const p{.m = 2, .n = 8, .k = k, .values = one, .scale = one};
  EXPECT_THAT(elements_of(run(machine, p), 2), testing::Each(k));
  GroupedResult const without = run_by(machine, p, [&](GroupedGemmArguments const& g) {
    gemm(machine, {.in = DType::e4m3,
                   .b_major = Major::k,
                   .m = g.m,
                   .n = g.n,
                   .k = g.k,
                   .a = g.a,
                   .b = g.b,
                   .d = g.d});
  });
  // 2^14 for each CTA that has a share of K.
  EXPECT_THAT(elements_of(without, 2), testing::Each(testing::Le(1 << 15)));
}

// Entries in device memory that are no ranges: nothing outside of D is touched, and it ends.
TEST(GroupedGemm, KeepsWithinItsTensorsWhateverTheGroupsSay) {
  Machine const machine = test_machine();
  for (Grouping const grouping : {Grouping::contiguous, Grouping::masked, Grouping::k}) {
    GroupedProblem p = scaled_problem();
    p.grouping = grouping, p.m = 16;
    if (grouping == Grouping::k) p.out = DType::f32;
    p.sizes = {30, 50};
    EXPECT_NO_THROW(run_by(machine, p, [&](GroupedGemmArguments g) {
      std::vector<int> const wild = {2000000000, -2000000000};
      Buffer<int> const ends(machine, wild, "ends");
      g.group_ends = ends.data();
      grouped_gemm(machine, g);
      machine.synchronize();
    }));
  }
}

}  // namespace
}  // namespace tegula
