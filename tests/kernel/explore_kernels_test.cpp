#include <gtest/gtest.h>

#include <cstring>

#include "gemm_sm90_problem.hpp"
#include "tegula/sim/explore.hpp"
#include "test_machine.hpp"

/// The GEMM kernels at their smallest problems, in every order of the steps that do not commute: of a kernel
/// whose every wait is for one thing there is one.
namespace tegula {
namespace {

void expect_one_order(Machine const& machine, std::function<GemmResult()> const& run) {
  std::vector<std::uint8_t> d;
  auto const result = [&] {
    std::vector<std::byte> bytes(d.size());
    std::memcpy(bytes.data(), d.data(), d.size());
    return bytes;
  };
  sim::Exploration const e =
      sim::explore(*machine.simulation(), [&] { d = run().d; }, {.max_executions = 20, .result = result});
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
    GemmProblem p = problem_for(c);
    p.m = c.block_m * c.cluster_m;
    p.n = c.block_n * c.cluster_n;
    p.k = 2 * block_k(c) * c.split_k;
    expect_one_order(machine, [&] { return run(machine, p, {.configuration = i, .clusters = 1}); });
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
    GemmProblem p = problem_for(c);
    p.m = c.block_m * c.cluster_m;
    p.n = 4 * c.block_n * c.cluster_n;
    p.k = 2 * block_k(c);
    expect_one_order(machine, [&] { return run(machine, p, {.configuration = i, .clusters = 1}); });
  }
  EXPECT_GT(found, 0);
}

TEST(ExploreKernels, GemmSm80HasOneOrder) {
  Machine const machine = Machine::simulated(Arch::sm80);
  GemmProblem const p{.in = DType::f16, .m = 64, .n = 64, .k = 64, .constraints = {.kernel = gemm_sm80}};
  expect_one_order(machine, [&] { return run(machine, p); });
}

}  // namespace
}  // namespace tegula
