#include <gtest/gtest.h>

#include <cstring>

#include "attention_problem.hpp"
#include "gemm_sm90_problem.hpp"
#include "tegula/sim/explore.hpp"
#include "test_machine.hpp"

/// The GEMM and attention kernels at their smallest problems, in every order of the steps that do not
/// commute: of a kernel whose every wait is for one thing there is one.
namespace tegula {
namespace {

/// `run` returns the bytes of the result.
void expect_one_order(Machine const& machine, std::function<std::vector<std::uint8_t>()> const& run) {
  std::vector<std::uint8_t> output;
  auto const result = [&] {
    std::vector<std::byte> bytes(output.size());
    std::memcpy(bytes.data(), output.data(), output.size());
    return bytes;
  };
  sim::Exploration const e =
      sim::explore(*machine.simulation(), [&] { output = run(); }, {.max_executions = 20, .result = result});
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
    expect_one_order(machine, [&] { return run(machine, p, {.configuration = i, .clusters = 1}).d; });
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
    expect_one_order(machine, [&] { return run(machine, p, {.configuration = i, .clusters = 1}).d; });
  }
  EXPECT_GT(found, 0);
}

TEST(ExploreKernels, GemmSm80HasOneOrder) {
  Machine const machine = Machine::simulated(Arch::sm80);
  GemmProblem const p{.in = DType::f16, .m = 64, .n = 64, .k = 64, .constraints = {.kernel = gemm_sm80}};
  expect_one_order(machine, [&] { return run(machine, p).d; });
}

/// One CTA: the blocks of keys come round its two stages more than once.
TEST(ExploreKernels, AttentionSm80HasOneOrder) {
  Machine const machine = Machine::simulated(Arch::sm80);
  for (int const head_dim : {64, 128}) {
    for (bool const causal : {false, true}) {
      SCOPED_TRACE("head dim " + std::to_string(head_dim) + (causal ? ", causal" : ""));
      AttentionProblem const p{.head_dim = head_dim, .seq_q = 32, .seq_k = 384, .causal = causal};
      expect_one_order(machine, [&] { return run(machine, p).o; });
    }
  }
}

}  // namespace
}  // namespace tegula
