// Every form of the Hopper GEMM's source against float64. (That they are clean, and the same, at every
// schedule: tests/checker.)

#include "gemm_sm90_forms.hpp"

namespace tegula {
namespace {

class EveryForm : public testing::TestWithParam<int> {
 protected:
  GemmSm90Config const& c = gemm_sm90_forms()[static_cast<std::size_t>(GetParam())];

  GemmProblem problem() const { return problem_of_form(GetParam()); }
  GemmResult run(Machine const& machine, GemmProblem const& p, int clusters,
                 Raster raster = Raster::along_n) const {
    return run_form(machine, GetParam(), p, clusters, raster);
  }
};

TEST_P(EveryForm, ComputesRaggedBatches) {
  Machine const machine = Machine::simulated(Arch::sm90);
  GemmProblem p = problem();
  p.m = c.block_m * c.cluster_m + 5, p.n = c.block_n * c.cluster_n + 11;
  p.k = block_k(c) * (std::min(stages(c), 4) + 1) + 3;
  p.batch = 2, p.alpha = -0.5f, p.beta = 0.25f, p.bias = true;
  if (bits(c.a) == 8) p.scale_a = 0.5f, p.scale_b = 3.0f;
  for (int const clusters : {1, 3}) {
    p.one_a = clusters == 1;
    expect_near_exact(p, run(machine, p, clusters, clusters == 1 ? Raster::along_m : Raster::along_n));
  }
}

TEST_P(EveryForm, ComputesTheSmallestProblems) {
  Machine const machine = Machine::simulated(Arch::sm90);
  GemmProblem p = problem();
  for (int const k : {1, 31, 65}) {
    p.m = 1, p.n = 1, p.k = k;
    expect_near_exact(p, run(machine, p, 1));
    p.m = 67, p.n = 13;
    expect_near_exact(p, run(machine, p, 1));
  }
}

INSTANTIATE_TEST_SUITE_P(Source, EveryForm, testing::Range(0, static_cast<int>(gemm_sm90_forms().size())),
                         [](auto const& info) { return gemm_sm90_form_name(info.param); });

}  // namespace
}  // namespace tegula
