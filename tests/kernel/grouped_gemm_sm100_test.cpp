// Grouped GEMMs on Blackwell, on the simulated machine alone: each configuration against float64,
// over the edges of its tiles and of groups, at every schedule, and its mutants.

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "explore_kernel.hpp"
#include "grouped_gemm_forms.hpp"
#include "sm100_checks.hpp"
#include "thorough.hpp"

namespace tegula {
namespace {

/// A problem of a configuration's types, which it is constrained to.
GroupedProblem problem_for(GroupedGemmSm100Config const& c, int number) {
  return {.in = c.a,
          .in_b = c.b,
          .out = c.out,
          .scales = Scales::none,
          .block_scale = c.scale,
          .constraints = {.configuration = number, .clusters = 2}};
}

class EveryGroupedSm100Configuration : public testing::TestWithParam<int> {
 protected:
  Machine const machine = blackwell();
  GroupedGemmSm100Config const& c = configuration(grouped_gemm_sm100, GetParam());
  GroupedProblem const p = problem_for(c, GetParam());
  GroupedTile const tile = {c.ctas * c.block_m, c.block_n, block_k(c), std::min(stages(c), 4)};
};
INSTANTIATE_TEST_SUITE_P(
    Table, EveryGroupedSm100Configuration,
    testing::Range(0, static_cast<int>(configurations(grouped_gemm_sm100).size())),
    [](auto const& tested) { return fmt::format("{}", tested.param); });

TEST_P(EveryGroupedSm100Configuration, OverTheEdgesOfItsTiles) {
  expect_right_over_edges(machine, p, tile);
}
TEST_P(EveryGroupedSm100Configuration, OfAlignedRowsOntoC) {
  expect_right_onto_c(machine, p, tile);
}
TEST_P(EveryGroupedSm100Configuration, OfGroupsOfRows) { expect_right_of_rows(machine, p, tile); }
TEST_P(EveryGroupedSm100Configuration, OfGroupsOfK) { expect_right_of_k(machine, p, tile); }

/// The narrowest tile of bf16, or its pair's.
int configuration_of(int ctas) {
  auto const all = configurations(grouped_gemm_sm100);
  auto const found = std::ranges::find_if(all, [&](GroupedGemmSm100Config const& c) {
    return c.a == DType::bf16 && c.ctas == ctas && (ctas == 2 || c.block_n == 64);
  });
  return static_cast<int>(found - all.begin());
}
GroupedProblem problem_of(int ctas, Grouping grouping, int clusters) {
  int const number = configuration_of(ctas);
  GroupedProblem p = problem_for(configuration(grouped_gemm_sm100, number), number);
  p.grouping = grouping, p.constraints.clusters = clusters;
  return p;
}
Sm100Run run_of(GroupedProblem const& p) {
  return [p](Machine const& machine) { return run(machine, p).d; };
}

TEST(GroupedGemmSm100, OfManyGroups) {
  GroupedProblem p{.in = DType::bf16};
  expect_right_of_many_groups(blackwell(), p);
}

TEST(GroupedGemmSm100, OfRandomSplits) {
  expect_right_of_random_splits(blackwell(), thorough_or(300, 40),
                                [](GroupedProblem& p) { p.scales = Scales::none; });
}

TEST(GroupedGemmSm100, KeepsWithinItsTensorsWhateverTheGroupsSay) {
  expect_within_tensors(blackwell(), {.in = DType::bf16, .n = 72, .k = 144});
}

// One CTA walks two groups' tiles, one of them empty in between, and one that ends within a tile.
TEST(GroupedGemmSm100, IsTheSameAtEverySchedule) {
  GroupedProblem p = problem_of(1, Grouping::contiguous, 1);
  p.n = 61, p.k = 72, p.sizes = {130, 0, 7};
  expect_the_same_at_every_schedule(run_of(p), 2);
  p.grouping = Grouping::masked, p.m = 131;
  expect_the_same_at_every_schedule(run_of(p), 1);
}
// The stage is cleared behind two ends of groups.
TEST(GroupedGemmSm100, OfKIsTheSameAtEverySchedule) {
  GroupedProblem p = problem_of(1, Grouping::k, 1);
  p.m = 30, p.n = 64, p.sizes = {72, 0, 40, 64}, p.c = true;
  expect_the_same_at_every_schedule(run_of(p), 2);
}
// Both CTAs of a pair clear the same stages.
TEST(GroupedGemmSm100, OfKByAPairIsTheSameAtEverySchedule) {
  GroupedProblem p = problem_of(2, Grouping::k, 1);
  p.m = 150, p.n = 40, p.sizes = {72, 0, 40, 64}, p.c = true;
  expect_the_same_at_every_schedule(run_of(p), 1);
}
// Scales of other groups, and those between groups, which are NaN, count for none.
TEST(GroupedGemmSm100, OfKWithBlockScalesIsTheSameAtEverySchedule) {
  for (auto const& [type, scale, ctas] : {std::tuple(DType::e4m3, kMxScale, 1),
                                          {DType::e4m3, kMxScale, 2},
                                          {DType::e2m1, kMxScale, 1},
                                          {DType::e2m1, kNvScale, 1}}) {
    GroupedProblem const p{.in = type,
                           .out = DType::f32,
                           .block_scale = scale,
                           .grouping = Grouping::k,
                           .sizes = {140, 0, 42, 256, 2},
                           .m = ctas * 70,
                           .n = 61,
                           .apart = 300,
                           .c = true,
                           .constraints = {.block_m = 128 * ctas, .clusters = 1}};
    expect_right(blackwell(), p);
    expect_the_same_at_every_schedule(run_of(p), 1);
  }
}
// By every format with block scales: ragged rows, columns and groups, with and without gaps.
TEST(GroupedGemmSm100, OfRandomSplitsOfKWithBlockScales) {
  std::mt19937_64 random(18);
  auto const draw = [&](int most) {
    return static_cast<int>(random() % static_cast<unsigned>(most + 1));
  };
  for (int i = 0; i < thorough_or(200, 24); ++i) {
    GroupedProblem p{.in = i % 3 == 0 ? DType::e4m3 : DType::e2m1,
                     .out = DType::f32,
                     .block_scale = i % 3 == 2 ? kNvScale : kMxScale,
                     .grouping = Grouping::k,
                     .m = 1 + draw(150),
                     .n = 1 + draw(90),
                     .seed = static_cast<std::uint64_t>(i) + 1};
    p.sizes.resize(1 + static_cast<std::size_t>(draw(5)));
    for (int& size : p.sizes) size = draw(3) == 0 ? 0 : even_k(p, draw(draw(1) ? 600 : 40));
    p.apart = draw(1) * draw(300), p.c = draw(1) == 0;
    p.constraints.clusters = 1 + draw(2);
    expect_right(blackwell(), p);
    if (HasFailure()) return;
  }
}
// One that does not is no numbers; the others are right.
TEST(GroupedGemmSm100, OfBlockScalesGroupsOfKBeginWithAPieceOfScales) {
  GroupedProblem const p{.in = DType::e4m3,
                         .out = DType::f32,
                         .block_scale = kMxScale,
                         .grouping = Grouping::k,
                         .sizes = {128, 100, 60},
                         .m = 5,
                         .n = 9};
  Machine const machine = blackwell();
  GroupedResult const r = run_by(machine, p, [&](GroupedGemmArguments g) {
    Buffer<int> const begins(machine, std::vector<int>{0, 160, 256}, "begins");
    g.group_begins = begins.data();
    grouped_gemm(machine, g);
    machine.synchronize();
  });
  std::vector<double> const d = elements_of(r, 15);
  reference::Values const exact = reference::grouped_gemm(r.host, rows_of(p));
  for (std::size_t i = 0; i < d.size(); ++i) {
    if (i / 45 == 1)
      ASSERT_TRUE(std::isnan(d[i]));
    else
      ASSERT_LE(std::abs(d[i] - exact.value[i]), exact.bound[i]);
  }
}
TEST(GroupedGemmSm100, APairIsTheSameAtEverySchedule) {
  GroupedProblem p = problem_of(2, Grouping::contiguous, 1);
  p.n = 61, p.k = 72, p.sizes = {260, 0, 7}, p.c = true;
  expect_the_same_at_every_schedule(run_of(p), 1);
}

// mxf8 and nvf4: two groups' tiles by one CTA.
TEST(GroupedGemmSm100, OfBlockScalesIsTheSameAtEverySchedule) {
  for (DType const type : {DType::e4m3, DType::e2m1}) {
    GroupedProblem p{.in = type,
                     .block_scale = type == DType::e4m3 ? kMxScale : kNvScale,
                     .grouping = Grouping::contiguous,
                     .sizes = {130, 0, 7},
                     .n = 61,
                     .k = 300,
                     .padded_to = 128,
                     .constraints = {.block_m = 128, .clusters = 1}};
    expect_the_same_at_every_schedule(run_of(p), 1);
    p.grouping = Grouping::masked, p.m = 131, p.padded_to = 1;
    expect_the_same_at_every_schedule(run_of(p), 1);
  }
}

// A group whose rows do not begin with a piece of scales is no numbers; the others are right.
TEST(GroupedGemmSm100, OfBlockScalesGroupsBeginAtMultiplesOf128) {
  GroupedProblem p{.in = DType::e4m3,
                   .block_scale = kMxScale,
                   .grouping = Grouping::contiguous,
                   .sizes = {128, 3, 7},
                   .n = 40,
                   .k = 64};
  GroupedResult const r = run(blackwell(), p);
  std::vector<double> const d = elements_of(r, 138);
  reference::Values const exact = reference::grouped_gemm(r.host, rows_of(p));
  for (std::size_t i = 0; i < d.size(); ++i) {
    if (i / 40 < 131)
      ASSERT_LE(std::abs(d[i] - exact.value[i]), exact.bound[i]);
    else
      ASSERT_TRUE(std::isnan(d[i]));
  }
}

// More tiles than accumulators, more steps than stages.
TEST(GroupedGemmSm100, EveryRemovedFenceWaitAndCommitIsFound) {
  GroupedProblem p = problem_of(1, Grouping::contiguous, 1);
  int const all = stages(configuration(grouped_gemm_sm100, configuration_of(1)));
  p.n = 64, p.k = 64 * (all + 1), p.sizes = {130, 0, 100};
  expect_mutants_found(run_of(p), 9);
}
// A stage that comes round is cleared.
TEST(GroupedGemmSm100, EveryRemovedFenceWaitAndCommitOfGroupsOfKIsFound) {
  GroupedProblem p = problem_of(1, Grouping::k, 1);
  int const all = stages(configuration(grouped_gemm_sm100, configuration_of(1)));
  p.m = 100, p.n = 64, p.sizes = {64 * all + 40, 72, 8};
  expect_mutants_found(run_of(p), 11, {Operation::fence_proxy_async});
}

// A CTA tells its peer that the stage is there, and the peer that it has cleared its half.
TEST(GroupedGemmSm100, EveryRemovedFenceWaitAndCommitOfGroupsOfKByAPairIsFound) {
  GroupedProblem p = problem_of(2, Grouping::k, 1);
  int const all = stages(configuration(grouped_gemm_sm100, configuration_of(2)));
  p.m = 150, p.n = 64, p.sizes = {64 * all + 40, 72, 8};
  expect_mutants_found(run_of(p), 17, {Operation::fence_proxy_async});
}
// The scales behind a group's end are no numbers.
TEST(GroupedGemmSm100, EveryRemovedFenceWaitAndCommitOfGroupsOfKWithScalesIsFound) {
  GroupedProblem const p{.in = DType::e4m3,
                         .out = DType::f32,
                         .block_scale = kMxScale,
                         .grouping = Grouping::k,
                         .sizes = {900, 72, 40},
                         .m = 100,
                         .n = 64,
                         .apart = 40,
                         .constraints = {.block_m = 128, .clusters = 1}};
  expect_mutants_found(run_of(p), 11, {Operation::fence_proxy_async});
}

// Two tiles by one CTA: its every wait is for one thing.
TEST(GroupedGemmSm100, HasOneOrder) {
  Machine const machine = blackwell();
  GroupedProblem p = problem_of(1, Grouping::contiguous, 1);
  p.n = 64, p.k = 128, p.sizes = {3, 4};
  sim::Exploration const e = explore(machine, [&] { return run(machine, p).d; });
  EXPECT_TRUE(e.complete) << e.text();
  EXPECT_TRUE(e.ok()) << e.text();
  EXPECT_EQ(e.orders, 1) << e.text();
}
// Also where both CTAs of a pair clear stages.
TEST(GroupedGemmSm100, OfKByAPairHasOneOrder) {
  Machine const machine = blackwell();
  GroupedProblem p = problem_of(2, Grouping::k, 1);
  p.m = 140, p.n = 16, p.sizes = {72, 16, 8};
  sim::Exploration const e = explore(machine, [&] { return run(machine, p).d; });
  EXPECT_TRUE(e.complete) << e.text();
  EXPECT_TRUE(e.ok()) << e.text();
  EXPECT_EQ(e.orders, 1) << e.text();
}

// By the entry point: chosen there, and on no other machine.
TEST(GroupedGemmSm100, IsChosenOnAnSm100) {
  GroupedProblem const p{
      .in = DType::bf16, .grouping = Grouping::contiguous, .sizes = {5, 9}, .n = 16, .k = 64};
  Machine const machine = blackwell();
  run_by(machine, p, [&](GroupedGemmArguments const& g) {
    GroupedGemmPlan const plan = plan_grouped_gemm(g, machine.properties());
    EXPECT_EQ(plan.chosen().kernel, FamilyId(grouped_gemm_sm100));
    EXPECT_THAT(plan.reason, testing::HasSubstr("grouped_gemm_sm100 bf16"));
    GroupedGemmChoice other = choose_grouped_gemm(g, properties_of(sim::Generation::sm90));
    EXPECT_EQ(other.kernel, FamilyId(grouped_gemm_sm90));
    EXPECT_THROW(grouped_gemm(machine, g, other), argument_error);
    other.kernel = gemm_sm100;
    EXPECT_THROW(grouped_gemm(machine, g, other), argument_error);
    grouped_gemm(machine, g);
  });
}

}  // namespace
}  // namespace tegula
