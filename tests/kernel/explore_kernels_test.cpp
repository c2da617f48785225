#include <gtest/gtest.h>

#include "explore_kernel.hpp"
#include "test_machine.hpp"

/// The GEMM and attention kernels at their smallest problems, in every order of the steps that do
/// not commute: of a kernel whose every wait is for one thing there is one. (At more problems,
/// nightly: tests/checker/explore_runs.cpp.)
namespace tegula {
namespace {

void expect_one_order(Machine const& machine,
                      std::function<std::vector<std::uint8_t>()> const& run) {
  sim::Exploration const e = explore(machine, run);
  EXPECT_TRUE(e.complete) << e.text();
  EXPECT_TRUE(e.ok()) << e.text();
  EXPECT_EQ(e.orders, 1) << e.text();
  EXPECT_FALSE(e.accesses) << "no two accesses are left unordered";
}

TEST(ExploreKernels, EveryFormOfGemmSm90HasOneOrder) {
  for (int const i : one_of_each_form()) {
    GemmSm90Config const& c = table()[static_cast<std::size_t>(i)];
    SCOPED_TRACE(to_string(c));
    Machine const machine = Machine::simulated(Arch::sm90);
    expect_one_order(machine, [&] {
      return run(machine, smallest_problem(c), {.configuration = i, .clusters = 1}).d;
    });
  }
}

/// Each consumer computes two of four tiles, in turns, through a ring that comes round.
TEST(ExploreKernels, PingPongOfSeveralTilesHasOneOrder) {
  int found = 0;
  for (int const i : one_of_each_form()) {
    GemmSm90Config const& c = table()[static_cast<std::size_t>(i)];
    if (c.schedule != Schedule::pingpong) continue;
    SCOPED_TRACE(to_string(c));
    ++found;
    Machine const machine = Machine::simulated(Arch::sm90);
    GemmProblem p = smallest_problem(c);
    p.n *= 4;
    expect_one_order(machine,
                     [&] { return run(machine, p, {.configuration = i, .clusters = 1}).d; });
  }
  EXPECT_GT(found, 0);
}

TEST(ExploreKernels, GemmSm80HasOneOrder) {
  Machine const machine = Machine::simulated(Arch::sm80);
  expect_one_order(machine, [&] {
    return run(machine, smallest_problem(configurations(gemm_sm80).front(), 0)).d;
  });
}

TEST(ExploreKernels, EveryConfigurationOfAttentionSm80HasOneOrder) {
  Machine const machine = Machine::simulated(Arch::sm90);
  for (int i = 0; i < static_cast<int>(configurations(attention_sm80).size()); ++i) {
    AttentionConfig const& c = configuration(attention_sm80, i);
    SCOPED_TRACE(to_string(c));
    expect_one_order(machine,
                     [&] { return run_on(attention_sm80, machine, smallest_problem(c), i).o; });
  }
}

}  // namespace
}  // namespace tegula
