// The Blackwell GEMM against float64, on the simulated machine alone: every configuration, ragged
// sizes, batches, epilogues and adversarial values, at several schedules; and in every order.

#include <algorithm>
#include <array>

#include "explore_kernel.hpp"
#include "gemm_sm100_problem.hpp"

namespace tegula {
namespace {

class EverySm100Configuration : public testing::TestWithParam<int> {};

// Over the edges of its tiles, more than once round the ring of stages and round the accumulators.
TEST_P(EverySm100Configuration, IsCorrectOverTheEdgesOfItsTiles) {
  GemmSm100Config const& c = configuration(gemm_sm100, GetParam());
  SCOPED_TRACE(to_string(c));
  bool const odd = GetParam() % 2 == 1;
  GemmProblem p = problem_for(c);
  p.m = c.ctas * c.block_m + 9;
  p.n = c.block_n + (odd ? 8 : 3);
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
        !all[i].launched)
      return static_cast<int>(i);
  }
  return -1;
}
/// Of bf16, whose tiles are dealt by cluster launch control.
int launched_configuration(int ctas) {
  auto const all = configurations(gemm_sm100);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].launched && all[i].ctas == ctas) return static_cast<int>(i);
  }
  return -1;
}

/// Clean, and the same bits, whenever operations land and whoever runs; every tile multiplied once.
void expect_the_same(GemmProblem const& p, int configuration, std::uint64_t seeds,
                     int multiprocessors = 0) {
  auto const multiply_adds = [](Machine const& machine) {
    return machine.last_report()->total.fused_multiply_adds;
  };
  Machine const first = blackwell({.multiprocessors = multiprocessors});
  auto const expected = run_sm100(first, p, configuration, 1);
  expect_near_exact(p, expected);
  using sim::Completion, sim::Interleaving;
  for (auto const completion : {Completion::last, Completion::first, Completion::random}) {
    for (auto const interleaving :
         {Interleaving::round_robin, Interleaving::random, Interleaving::one_warp_behind}) {
      for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        Machine const machine = blackwell({.completion = completion,
                                           .interleaving = interleaving,
                                           .seed = seed,
                                           .multiprocessors = multiprocessors});
        EXPECT_EQ(run_sm100(machine, p, configuration, 1).d, expected.d)
            << "completion " << to_string(completion) << ", interleaving "
            << to_string(interleaving) << ", seed " << seed;
        EXPECT_EQ(multiply_adds(machine), multiply_adds(first));
      }
    }
  }
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

/// What orders tensor memory is needed: without it the checker finds something, or the result is
/// wrong. The same of a commit that tells one CTA of a pair less.
void expect_mutants_found(GemmProblem const& p, int configuration, int least) {
  Machine const lists = blackwell({.multiprocessors = 1, .list_marked = true});
  auto const expected = run_sm100(lists, p, configuration, 1);
  sim::Report const report = *lists.last_report();
  int mutants = 0;
  for (sim::MarkedStatement const& statement : report.marked) {
    switch (statement.operation) {
      case Operation::tcgen05_wait:
      case Operation::tcgen05_fence:
      case Operation::tcgen05_commit:
      case Operation::mbarrier_wait:
      case Operation::mbarrier_arrive:
      case Operation::mbarrier_arrive_cluster:
      case Operation::mbarrier_arrive_expect_tx:
        break;
      default:
        continue;
    }
    for (Mutation const mutation : {Mutation::removed, Mutation::less}) {
      bool const of_commit = statement.operation == Operation::tcgen05_commit;
      if (mutation == Mutation::less && !of_commit) continue;
      if ((statement.admitted & mutation) == Mutation::none) continue;
      ++mutants;
      bool found = false;
      try {
        Machine const machine =
            blackwell({.multiprocessors = 1,
                       .mutant = sim::Mutant{statement.where.file, statement.where.line,
                                             statement.operation, mutation}});
        found = run_sm100(machine, p, configuration, 1).d != expected.d;
      } catch (std::exception const&) {
        found = true;
      }
      EXPECT_TRUE(found) << statement.where.file << ":" << statement.where.line << ": "
                         << to_string(statement.operation) << " " << to_string(mutation);
    }
  }
  EXPECT_GE(mutants, least);
}

TEST(GemmSm100, EveryRemovedFenceWaitAndCommitIsFound) {
  expect_mutants_found(three_tiles(), configuration_of(DType::bf16, 64), 9);
}

// Of a pair, whose tiles come by launch control: three tiles, one more step of K than stages.
TEST(GemmSm100, EveryRemovedFenceWaitAndCommitOfAPairIsFound) {
  int const configuration = launched_configuration(2);
  GemmSm100Config const& c = tegula::configuration(gemm_sm100, configuration);
  GemmProblem p = problem_for(c);
  p.m = 3 * 256, p.n = 64, p.k = 64 * (stages(c) + 1);
  expect_mutants_found(p, configuration, 14);
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
  Machine const machine = blackwell();
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

}  // namespace
}  // namespace tegula
