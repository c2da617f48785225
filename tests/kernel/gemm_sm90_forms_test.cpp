// Every form of the Hopper GEMM's source against float64. (That they are clean, and the same, at
// every schedule: tests/checker.)

#include "gemm_sm90_forms.hpp"

namespace tegula {
namespace {

class EveryForm : public testing::TestWithParam<int> {
 protected:
  GemmSm90Config const& c = gemm_sm90_forms()[static_cast<std::size_t>(GetParam())];

  GemmProblem problem() const { return problem_of_form(GetParam()); }
  /// Runs the problem, of the kernel's m and n, and holds the result against float64.
  FormResult run(Machine const& machine, GemmProblem const& of_kernel, int clusters,
                 Raster raster = Raster::along_n) const {
    GemmProblem const p = callers_problem(GetParam(), of_kernel);
    FormResult result = run_form(machine, GetParam(), p, clusters, raster);
    expect_near_exact(p, result);
    return result;
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
    run(machine, p, clusters, clusters == 1 ? Raster::along_m : Raster::along_n);
  }
}

TEST_P(EveryForm, ComputesTheSmallestProblems) {
  Machine const machine = Machine::simulated(Arch::sm90);
  GemmProblem p = problem();
  for (int const k : {1, 31, 65}) {
    p.m = 1, p.n = 1, p.k = k;
    run(machine, p, 1);
    p.m = 67, p.n = 13;
    run(machine, p, 1);
  }
}

/// Those with tiles of two widths.
class EveryFormOfTwoWidths : public EveryForm {};

// Rows of D that end anywhere in a tile of either width, or where one ends. One or two clusters
// walk them; a ping-pong consumer comes from a wide tile to a narrow one.
TEST_P(EveryFormOfTwoWidths, ComputesTilesOfBoth) {
  Machine const machine = Machine::simulated(Arch::sm90);
  auto const [wide, narrow] = tile_widths(c);
  GemmProblem p = problem();
  p.m = c.block_m * c.cluster_m + 5;
  p.k = block_k(c) + 3;
  p.alpha = -0.5f, p.bias = true;
  int both = 0, all_narrow = 0;
  for (int const n : {2 * narrow - 3, wide + narrow - 5, wide + narrow, wide + narrow + 1,
                      wide + 2 * narrow - 6, wide + 2 * narrow - 3}) {
    for (int const clusters : {1, 2}) {
      p.n = n, p.beta = clusters == 2 ? 0.25f : 0, p.batch = clusters;
      FormResult const r =
          run(machine, p, clusters, n % 2 == 0 ? Raster::along_m : Raster::along_n);
      if (r.tiling.fitted()) ++(r.tiling.first_narrow > 0 ? both : all_narrow);
    }
  }
  EXPECT_GE(both, 8);
  EXPECT_GE(all_narrow, 1);
}

std::string name_of_form(testing::TestParamInfo<int> const& info) {
  return gemm_sm90_form_name(info.param);
}

std::vector<int> forms_of_two_widths() {
  std::vector<int> forms;
  for (int i = 0; i < static_cast<int>(gemm_sm90_forms().size()); ++i)
    if (gemm_sm90_forms()[static_cast<std::size_t>(i)].narrow_n > 0) forms.push_back(i);
  return forms;
}

INSTANTIATE_TEST_SUITE_P(Source, EveryForm,
                         testing::Range(0, static_cast<int>(gemm_sm90_forms().size())),
                         name_of_form);
INSTANTIATE_TEST_SUITE_P(Source, EveryFormOfTwoWidths, testing::ValuesIn(forms_of_two_widths()),
                         name_of_form);

// Two rows of tiles that differ in their numbers of wide and of narrow tiles: of the forms whose
// narrower tiles have three quarters of the columns. (Others take many more tiles.)
TEST(FormsOfTwoWidths, ComputeFourRegionsOfTiles) {
  Machine const machine = Machine::simulated(Arch::sm90);
  int count = 0;
  for (int const form : forms_of_two_widths()) {
    GemmSm90Config const& c = gemm_sm90_forms()[static_cast<std::size_t>(form)];
    if (4 * c.narrow_n != 3 * c.block_n) continue;
    SCOPED_TRACE(gemm_sm90_form_name(form));
    GemmProblem p = problem_of_form(form);
    p.m = c.block_m * c.cluster_m + 5;
    p.n = 4 * tile_widths(c).wide + tile_widths(c).wide / 2 + c.cluster_n;
    p.k = 24;
    p = callers_problem(form, p);
    for (Raster const raster : {Raster::along_m, Raster::along_n}) {
      FormResult const r = run_form(machine, form, p, 6, raster);
      EXPECT_NE(r.tiling.regions[3].first, TileRegion::nowhere);
      expect_near_exact(p, r);
    }
    ++count;
  }
  EXPECT_GE(count, 3);
}

}  // namespace
}  // namespace tegula
