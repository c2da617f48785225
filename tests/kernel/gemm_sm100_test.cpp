// The Blackwell GEMM against float64, on the simulated machine alone: every configuration, ragged
// sizes, batches, epilogues and adversarial values, at several schedules; and in every order.

#include <algorithm>
#include <array>

#include "explore_kernel.hpp"
#include "gemm_sm100_problem.hpp"
#include "sm100_checks.hpp"

namespace tegula {
namespace {

class EverySm100Configuration : public testing::TestWithParam<int> {};

// Over the edges of its tiles, more than once round the ring of stages and round the accumulators.
TEST_P(EverySm100Configuration, IsCorrectOverTheEdgesOfItsTiles) {
  GemmSm100Config const& c = configuration(gemm_sm100, GetParam());
  SCOPED_TRACE(to_string(c));
  bool const odd = GetParam() % 2 == 1;
  GemmProblem p = problem_for(c);
  p.m = cluster_of(c).m * c.block_m + 9;
  p.n = cluster_of(c).n * c.block_n + (odd ? 8 : 3);
  p.k = block_k(c) * (std::min(stages(c), 4) + 1) + (odd ? 1 : 8);
  p.batch = 2;
  p.one_a = odd;
  p.padding = odd ? 16 : 0;
  p.alpha = 0.5f;
  p.beta = -2;
  p.bias = true;
  if (bits(c.a) == 8) p.scale_a = 0.25f, p.scale_b = -3.0f;
  Machine const machine = blackwell();
  expect_near_exact(p, run_sm100(machine, p, GetParam(), 2));
}

INSTANTIATE_TEST_SUITE_P(Table, EverySm100Configuration,
                         testing::Range(0, static_cast<int>(configurations(gemm_sm100).size())));

int configuration_of(DType type, int block_n, int ctas = 1) {
  auto const all = configurations(gemm_sm100);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].a == type && all[i].out == type && all[i].block_n == block_n && !all[i].activates &&
        all[i].a_major == Major::k && all[i].b_major == Major::k && all[i].ctas == ctas &&
        !all[i].launched && cluster_size(all[i]) == ctas)
      return static_cast<int>(i);
  }
  return -1;
}
/// Of bf16, whose tiles are dealt by cluster launch control, to CTAs, or pairs, one by one.
int launched_configuration(int ctas) {
  auto const all = configurations(gemm_sm100);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].launched && all[i].ctas == ctas && cluster_size(all[i]) == ctas)
      return static_cast<int>(i);
  }
  return -1;
}
/// Those of clusters of several CTAs, or pairs.
std::vector<int> cluster_configurations() {
  std::vector<int> found;
  auto const all = configurations(gemm_sm100);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (cluster_size(all[i]) > all[i].ctas) found.push_back(static_cast<int>(i));
  }
  return found;
}

Sm100Run run_of(GemmProblem const& p, int configuration) {
  return [p, configuration](Machine const& machine) {
    return run_sm100(machine, p, configuration, 1).d;
  };
}

/// Right, and the same whenever operations land and whoever runs.
void expect_the_same(GemmProblem const& p, int configuration, std::uint64_t seeds,
                     int multiprocessors = 0) {
  expect_near_exact(
      p, run_sm100(blackwell({.multiprocessors = multiprocessors}), p, configuration, 1));
  expect_the_same_at_every_schedule(run_of(p, configuration), seeds, multiprocessors);
}

// One CTA computes three tiles.
TEST(GemmSm100, IsTheSameAtEverySchedule) {
  GemmProblem p = problem_for(GemmSm100Config{.block_n = 64});
  p.m = 3 * 128 - 5, p.n = 61, p.k = 3 * 64 + 8;
  expect_the_same(p, configuration_of(DType::bf16, 64), 3);
}

// A pair computes two tiles, of which the odd CTA has no rows of the second.
TEST(GemmSm100, APairIsTheSameAtEverySchedule) {
  GemmProblem p{.m = 256 + 100, .n = 61, .k = 2 * 64 + 8, .aligned = true};
  expect_the_same(p, configuration_of(DType::bf16, 256, 2), 1);
}

// Six tiles, of which two clusters at a time take over those that have not started.
TEST(GemmSm100, TilesByLaunchControlAreTheSameAtEverySchedule) {
  GemmProblem p{.m = 6 * 128 - 5, .n = 72, .k = 64 + 8, .aligned = true};
  expect_the_same(p, launched_configuration(1), 2, 2);
  p.a_major = p.b_major = Major::mn;
  p.m = 3 * 256 - 128 - 5;
  expect_the_same(p, launched_configuration(2), 1, 2);
}

// Every cluster of several at a tile's edges and elsewhere: whole CTAs of it have nothing to store.
TEST(GemmSm100, ClustersAreCorrectWhateverTheyDoNotDivide) {
  for (int const configuration : cluster_configurations()) {
    GemmSm100Config const& c = tegula::configuration(gemm_sm100, configuration);
    SCOPED_TRACE(to_string(c));
    int const tile_m = cluster_of(c).m * c.block_m, tile_n = cluster_of(c).n * c.block_n;
    for (auto const& [m, n, k] :
         {std::array{1, 1, 1}, std::array{131, 61, 67}, std::array{c.block_m - 1, tile_n - 1, 8},
          std::array{tile_m, c.block_n, 64}, std::array{tile_m - 1, c.block_n + 1, 72},
          std::array{c.block_m + 1, tile_n + 1, 136}}) {
      GemmProblem p = problem_for(c);
      p.m = m, p.n = n, p.k = k;
      p.beta = m % 2 == 0 ? 0.5f : 0;
      p.bias = m % 2 == 1;
      expect_near_exact(
          p, run_sm100(blackwell({.multiprocessors = 2 * cluster_size(c)}), p, configuration, 2));
    }
  }
}

// Two clusters' tiles, of which the second has few rows, in two steps of K.
TEST(GemmSm100, ClustersAreTheSameAtEverySchedule) {
  for (int const configuration : cluster_configurations()) {
    GemmSm100Config const& c = tegula::configuration(gemm_sm100, configuration);
    SCOPED_TRACE(to_string(c));
    GemmProblem p = problem_for(c);
    p.m = cluster_of(c).m * c.block_m + 40, p.n = (cluster_of(c).n - 1) * c.block_n + 24;
    p.k = block_k(c) + 16;
    expect_the_same(p, configuration, 1, cluster_size(c));
  }
}

TEST(GemmSm100, TakesTinyAndAdversarialProblems) {
  Machine const machine = blackwell();
  for (auto const& [m, n, k] : {std::array{1, 1, 1}, std::array{1, 8, 7}, std::array{129, 65, 64},
                                std::array{77, 300, 130}}) {
    GemmProblem p{.m = m, .n = n, .k = k, .aligned = true};
    p.a = p.b = adversarial;
    expect_correct(machine, p);
  }
}

TEST(GemmSm100, IsChosenOnASimulatedBlackwell) {
  Machine const machine = blackwell();
  GemmProblem const p{.m = 512, .n = 512, .k = 512, .aligned = true};
  run_by(machine, p, [&](GemmArguments const& g) {
    EXPECT_EQ(choose_gemm(g, machine.properties()).kernel, FamilyId(gemm_sm100));
    EXPECT_THROW(choose_gemm(g, machine.properties(), {.kernel = gemm_sm90}), argument_error);
    gemm(machine, g);
  });
}

/// The problem of which every statement matters: three tiles through two tiles of accumulators,
/// more steps of K than stages.
GemmProblem three_tiles() {
  GemmProblem p = problem_for(GemmSm100Config{.block_n = 64});
  p.m = 3 * 128, p.n = 64, p.k = 64 * (stages(GemmSm100Config{.block_n = 64}) + 1);
  return p;
}

TEST(GemmSm100, EveryRemovedFenceWaitAndCommitIsFound) {
  expect_mutants_found(run_of(three_tiles(), configuration_of(DType::bf16, 64)), 9);
}

// Of a pair, whose tiles come by launch control: three tiles, one more step of K than stages.
TEST(GemmSm100, EveryRemovedFenceWaitAndCommitOfAPairIsFound) {
  int const configuration = launched_configuration(2);
  GemmSm100Config const& c = tegula::configuration(gemm_sm100, configuration);
  GemmProblem p = problem_for(c);
  p.m = 3 * 256, p.n = 64, p.k = 64 * (stages(c) + 1);
  expect_mutants_found(run_of(p, configuration), 14);
}

// Of clusters: whom a commit tells. Three tiles through two tiles of accumulators, in more steps of
// K than there are stages.
TEST(GemmSm100, EveryRemovedFenceWaitAndCommitOfAClusterIsFound) {
  for (int const configuration : cluster_configurations()) {
    GemmSm100Config const& c = tegula::configuration(gemm_sm100, configuration);
    SCOPED_TRACE(to_string(c));
    GemmProblem p = problem_for(c);
    p.m = cluster_of(c).m * c.block_m, p.n = 3 * cluster_of(c).n * c.block_n;
    p.k = block_k(c) * (stages(c) / 3 + 1);
    expect_mutants_found(run_of(p, configuration), c.launched ? 12 : 10);
  }
}

// Two tiles by one CTA: its every wait is for one thing.
TEST(GemmSm100, HasOneOrder) {
  Machine const machine = blackwell();
  GemmProblem p = problem_for(GemmSm100Config{.block_n = 64});
  p.m = 16, p.n = 128, p.k = 128;
  sim::Exploration const e = explore(
      machine, [&] { return run_sm100(machine, p, configuration_of(DType::bf16, 64), 1).d; });
  EXPECT_TRUE(e.complete) << e.text();
  EXPECT_TRUE(e.ok()) << e.text();
  EXPECT_EQ(e.orders, 1) << e.text();
}

// Two tiles by a pair, and by a CTA that takes the second over.
TEST(GemmSm100, PairsAndLaunchControlAreRightInEveryOrder) {
  Machine const machine = blackwell({.multiprocessors = 1});
  for (int const configuration :
       {configuration_of(DType::bf16, 256, 2), launched_configuration(1)}) {
    GemmSm100Config const& c = tegula::configuration(gemm_sm100, configuration);
    GemmProblem const p{.m = 16, .n = 2 * c.block_n, .k = 128, .aligned = true};
    sim::Exploration const e =
        explore(machine, [&] { return run_sm100(machine, p, configuration, 1).d; });
    EXPECT_TRUE(e.complete) << e.text();
    EXPECT_TRUE(e.ok()) << e.text();
  }
}

// Two clusters' tiles, in two steps of K.
TEST(GemmSm100, ClustersAreRightInEveryOrder) {
  for (int const configuration : cluster_configurations()) {
    GemmSm100Config const& c = tegula::configuration(gemm_sm100, configuration);
    SCOPED_TRACE(to_string(c));
    Machine const machine = blackwell({.multiprocessors = cluster_size(c)});
    GemmProblem p = problem_for(c);
    p.m = 16, p.n = 2 * cluster_of(c).n * c.block_n, p.k = 2 * block_k(c);
    sim::Exploration const e =
        explore(machine, [&] { return run_sm100(machine, p, configuration, 1).d; });
    EXPECT_TRUE(e.complete) << e.text();
    EXPECT_TRUE(e.ok()) << e.text();
  }
}

// Three tiles, dealt to two CTAs, and to two pairs: whichever asks first, and whoever starts when.
TEST(GemmSm100, TilesDealtToSeveralClustersAreRightInEveryOrder) {
  Machine const machine = blackwell({.multiprocessors = 2});
  for (int const ctas : {1, 2}) {
    int const configuration = launched_configuration(ctas);
    GemmSm100Config const& c = tegula::configuration(gemm_sm100, configuration);
    GemmProblem p = problem_for(c);
    p.m = 16, p.n = 3 * c.block_n, p.k = 64, p.aligned = true;
    sim::Exploration const e = explore(
        machine, [&] { return run_sm100(machine, p, configuration, 3).d; }, 200);
    EXPECT_TRUE(e.complete) << e.text();
    EXPECT_TRUE(e.ok()) << e.text();
    EXPECT_GE(e.orders, 4) << e.text();
    EXPECT_FALSE(e.accesses) << "no two accesses are left unordered";
  }
}

}  // namespace
}  // namespace tegula
