// Block-scaled and grouped GEMMs: each configuration against float64, over the edges of its tiles
// and of groups; what no group has must not be touched, and must not count.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "grouped_gemm_forms.hpp"
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
  GroupedProblem const p = problem_for(GetParam());
  GroupedTile const tile = {cluster_rows(c), cluster_columns(c), block_k(c), stages(c)};
};
INSTANTIATE_TEST_SUITE_P(GroupedGemm, EveryGroupedConfiguration,
                         testing::Range(0,
                                        static_cast<int>(configurations(grouped_gemm_sm90).size())),
                         [](auto const& tested) { return fmt::format("{}", tested.param); });

TEST_P(EveryGroupedConfiguration, OverTheEdgesOfItsTiles) {
  expect_right_over_edges(machine, p, tile);
}
TEST_P(EveryGroupedConfiguration, OfAlignedRowsOntoC) { expect_right_onto_c(machine, p, tile); }
TEST_P(EveryGroupedConfiguration, OfGroupsOfRows) { expect_right_of_rows(machine, p, tile); }
// More steps than a warp holds scales for; and the second tile begins at another stage of the ring
// than the first.
TEST_P(EveryGroupedConfiguration, OfManySteps) {
  if (c.scales == Scales::none) GTEST_SKIP() << "it has no scales";
  GroupedProblem many = p;
  many.m = 9, many.n = tile.n + 8, many.k = 37 * tile.k + 16, many.constraints.clusters = 1;
  expect_right(machine, many);
}
TEST_P(EveryGroupedConfiguration, OfGroupsOfK) {
  if (!computes_groups_of_k(c)) GTEST_SKIP() << "it computes no groups of k";
  expect_right_of_k(machine, p, tile);
}

GroupedProblem scaled_problem() { return {.m = 40, .n = 72, .k = 144}; }

TEST(GroupedGemm, OfManyGroups) { expect_right_of_many_groups(test_machine(), scaled_problem()); }

TEST(GroupedGemm, OfRandomSplits) {
  expect_right_of_random_splits(test_machine(), thorough_or(300, 60), [](GroupedProblem&) {});
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

TEST(GroupedGemm, KeepsWithinItsTensorsWhateverTheGroupsSay) {
  expect_within_tensors(test_machine(), scaled_problem());
}

}  // namespace
}  // namespace tegula
