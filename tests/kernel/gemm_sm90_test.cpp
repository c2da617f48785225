// The Hopper GEMM against float64: every configuration of the table, persistent grids, ragged
// sizes, strides, batches, epilogues and adversarial values; the same bits of every configuration.

#include "gemm_sm90_problem.hpp"
#include "thorough.hpp"

namespace tegula {
namespace {

/// Each configuration of the table, at a problem that reaches over the edge of its tiles and goes
/// more than once round its ring of stages; two clusters walk the tiles of two batches.
class EverySm90Configuration : public testing::TestWithParam<int> {};

TEST_P(EverySm90Configuration, IsCorrectOverTheEdgesOfItsTiles) {
  GemmSm90Config const& c = table()[static_cast<std::size_t>(GetParam())];
  Machine const machine = test_machine();
  bool const odd = GetParam() % 2 == 1;
  GemmProblem p = problem_for(c);
  p.m = c.block_m * c.cluster_m + 9;
  p.n = c.block_n * c.cluster_n + (odd ? 8 : 3);
  p.k = block_k(c) * (std::min(stages(c), 5) + 1) + (odd ? 1 : 8);
  p.batch = 2;
  p.one_a = odd;
  p.one_b = !odd && GetParam() % 4 == 0;
  p.padding = odd ? 16 : 0;
  p.alpha = 0.5f;
  p.beta = -2;
  p.bias = true;
  if (bits(c.a) == 8) p.scale_a = 0.25f, p.scale_b = -3.0f;
  std::vector<Activation> activations = {Activation::none};
  if (c.activates) activations = {Activation::relu, Activation::gelu, Activation::silu};
  for (Activation const activation : activations) {
    p.activation = activation;
    expect_correct(machine, p,
                   {.configuration = GetParam(),
                    .clusters = 2,
                    .raster = odd ? Raster::along_m : Raster::along_n,
                    .lockstep_steps = odd ? 4 : 0});
  }
}

std::string name_of(testing::TestParamInfo<int> const& info) {
  std::string name = to_string(table()[static_cast<std::size_t>(info.param)]);
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return std::to_string(info.param) + "_" + name;
}

INSTANTIATE_TEST_SUITE_P(Table, EverySm90Configuration,
                         testing::Range(0, static_cast<int>(configurations(gemm_sm90).size())),
                         name_of);

/// Each configuration that has narrower tiles, where D is cut into both: with everything that an
/// epilogue adds, a ragged edge stored one by one; and with nothing, which takes the short way. A
/// sum does not depend on the tile: the same bits as of equal tiles.
class EverySm90ConfigurationOfTwoWidths : public testing::TestWithParam<int> {};

TEST_P(EverySm90ConfigurationOfTwoWidths, IsCorrectAndGivesTheBitsOfEqualTiles) {
  GemmSm90Config const& c = table()[static_cast<std::size_t>(GetParam())];
  Machine const machine = test_machine();
  for (bool const plain : {false, true}) {
    GemmProblem p = fitted_problem(c, /*even=*/plain);
    Launch launch{.configuration = GetParam(),
                  .clusters = plain ? 1 : 2,
                  .raster = GetParam() % 2 == 1 ? Raster::along_m : Raster::along_n};
    if (plain) {
      p.batch = 1;
    } else {
      p.alpha = 0.5f, p.beta = -2, p.bias = true;
      if (bits(c.a) == 8) p.scale_a = 0.25f, p.scale_b = -3.0f;
    }
    auto const of_equal_tiles = run(machine, p, launch).d;
    launch.fitted = true;
    EXPECT_EQ(expect_correct(machine, p, launch).d, of_equal_tiles);
  }
}

INSTANTIATE_TEST_SUITE_P(Table, EverySm90ConfigurationOfTwoWidths,
                         testing::ValuesIn(configurations_that(of_two_widths)), name_of);

// Extents around one, the tile's and the stage's, primes, and one more or less: each of m, n and k
// goes through its list, beside values of the others that change with it.
TEST(GemmSm90, IsCorrectAtUglySizes) {
  Machine const machine = test_machine();
  for (int const configuration : one_of_each_form()) {
    GemmSm90Config const& c = table()[static_cast<std::size_t>(configuration)];
    int const ms[] = {1, 2, 7, c.block_m - 1, c.block_m, c.block_m + 1, 61};
    int const ns[] = {1, 3, 8, c.block_n - 1, c.block_n, c.block_n + 1, 97, 33};
    int const ks[] = {1, 2, 7, 8, 15, 16, 17, 63, 64, 65, 127, 129, 257};
    for (std::size_t i = 0; i < 13; ++i) {
      if (!chosen(static_cast<std::int64_t>(i) + configuration, 2)) continue;
      GemmProblem p = problem_for(c);
      p.m = ms[i % 7], p.n = ns[(i + 1) % 8], p.k = ks[i];
      p.bias = i % 2 == 1;
      expect_correct(machine, p, {.configuration = configuration, .clusters = 1});
    }
  }
}

TEST(GemmSm90, TakesEveryEpilogue) {
  Machine const machine = test_machine();
  for (int const configuration : one_of_each_form()) {
    GemmProblem p = problem_for(table()[static_cast<std::size_t>(configuration)]);
    p.m = 70, p.n = 45, p.k = 100, p.batch = 2;
    std::int64_t epilogue = configuration;
    for (float const alpha : {1.0f, -0.5f, 0.0f}) {
      for (float const beta : {0.0f, 3.0f}) {
        for (bool const bias : {false, true}) {
          if (!chosen(epilogue++, 5)) continue;
          p.alpha = alpha, p.beta = beta, p.bias = bias;
          // Where beta is 0, C is not read.
          p.c = beta != 0 || bias ? normal : [](std::mt19937_64&) { return __builtin_nanf(""); };
          expect_correct(machine, p, {.configuration = configuration});
        }
      }
    }
  }
}

// fp8's scales, one or both or none of them there.
TEST(GemmSm90, MultipliesByTheScalesThatAreThere) {
  Machine const machine = test_machine();
  auto const fp8 = configurations_that(
      [](GemmSm90Config const& c) { return c.a == DType::e4m3 && c.b == DType::e4m3; });
  ASSERT_FALSE(fp8.empty());
  GemmProblem p = problem_for(table()[static_cast<std::size_t>(fp8.front())]);
  p.m = 20, p.n = 40, p.k = 200, p.alpha = 2;
  for (bool const a : {false, true}) {
    for (bool const b : {false, true}) {
      p.scale_a = a ? std::optional(0.125f) : std::nullopt;
      p.scale_b = b ? std::optional(-1.5f) : std::nullopt;
      expect_correct(machine, p, {.configuration = fp8.front()});
    }
  }
}

TEST(GemmSm90, SharesOperandsAcrossTheBatch) {
  Machine const machine = test_machine();
  for (int const configuration : one_of_each_form()) {
    for (bool const one_a : {false, true}) {
      for (bool const one_b : {false, true}) {
        GemmProblem p = problem_for(table()[static_cast<std::size_t>(configuration)]);
        p.m = 30, p.n = 40, p.k = 72, p.batch = 3, p.one_a = one_a, p.one_b = one_b;
        expect_correct(machine, p, {.configuration = configuration, .clusters = 2, .parts = 2});
      }
    }
  }
}

TEST(GemmSm90, SurvivesAdversarialValues) {
  Machine const machine = test_machine();
  std::map<std::tuple<DType, DType, DType>, int> types;
  for (std::size_t i = 0; i < table().size(); ++i) {
    if (!table()[i].activates)
      types.emplace(std::tuple(table()[i].a, table()[i].b, table()[i].out), static_cast<int>(i));
  }
  for (auto const& [_, configuration] : types) {
    GemmProblem p = problem_for(table()[static_cast<std::size_t>(configuration)]);
    p.m = 70, p.n = 50, p.k = 80;
    p.a = adversarial;
    expect_correct(machine, p, {.configuration = configuration});
    p.b = [](std::mt19937_64& random) { return 0x1p-20f * normal(random); };
    expect_correct(machine, p, {.configuration = configuration});
    p.b = adversarial, p.c = adversarial, p.beta = 1, p.bias = true;
    expect_correct(machine, p, {.configuration = configuration});
  }
}

// Small integers make every sum exact, so the result must be too.
TEST(GemmSm90, IsExactOnSmallIntegers) {
  Machine const machine = test_machine();
  auto const integer = [](std::mt19937_64& random) {
    return static_cast<float>(static_cast<int>(random() % 9) - 4);
  };
  for (int const configuration : configurations_that(
           [](GemmSm90Config const& c) { return c.out == DType::f32 && !c.activates; })) {
    GemmProblem p = problem_for(table()[static_cast<std::size_t>(configuration)]);
    p.m = 130, p.n = 140, p.k = 300;
    p.a = p.b = integer;
    GemmResult const r = run(machine, p, {.configuration = configuration});
    auto const exact = reference::gemm(r.host, reference::some_rows(p.m, p.m));
    for (std::int64_t i = 0; i < std::int64_t{p.m} * p.n; ++i) {
      ASSERT_EQ(reference::element(r.d.data(), p.out, i / p.n * *r.host.ldd + i % p.n),
                exact.value[static_cast<std::size_t>(i)])
          << to_string(table()[static_cast<std::size_t>(configuration)]) << ": element " << i;
    }
  }
}

// A sum runs over K in the order of wgmma's steps, whatever the tile and the schedule:
// configurations that do not split K, or split it alike, agree to the bit.
TEST(GemmSm90, EveryTileAndScheduleGivesTheSameBits) {
  Machine const machine = test_machine();
  GemmProblem p{.m = 150, .n = 200, .k = 333, .batch = 2, .aligned = true, .alpha = 0.7f};
  for (bool const adds : {false, true}) {
    if (adds) p.beta = 1.1f, p.bias = true;
    std::map<int, std::vector<std::uint8_t>> by_split;
    for (int const configuration : configurations_that(plain_bf16)) {
      GemmSm90Config const& c = table()[static_cast<std::size_t>(configuration)];
      if (adds && c.transposed) continue;
      auto const d = run_computable(machine, p, {.configuration = configuration, .clusters = 3}).d;
      // (Parts are three.)
      auto const [first, is_new] = by_split.emplace(c.in_parts ? 3 : c.split_k, d);
      EXPECT_TRUE(is_new || first->second == d) << to_string(c);
    }
    EXPECT_GT(by_split.size(), 1u);
  }
}

// The order of tiles, the size of the grid and its meetings decide when a tile is computed, not
// what it is.
TEST(GemmSm90, TheOrderOfTilesChangesNothing) {
  // One order of each kind is checked; of the others only the bits are compared.
  Machine const machine = test_machine(), unchecked = test_machine({.check = false});
  for (int const configuration : one_of_each_form()) {
    GemmSm90Config const& c = table()[static_cast<std::size_t>(configuration)];
    if (c.split_k > 1) continue;
    GemmProblem p = problem_for(c);
    p.m = 2 * c.block_m * c.cluster_m + 1, p.n = 2 * c.block_n * c.cluster_n + 1, p.k = 70;
    auto const expected = expect_correct(machine, p, {.configuration = configuration}).d;
    std::int64_t order = configuration;
    for (Raster const raster : {Raster::along_m, Raster::along_n}) {
      for (int const group : {1, 2, 5}) {
        for (int const clusters : {1, 2, 4}) {
          if (raster == Raster::along_m && clusters != 2) continue;
          if (!chosen(order++, c.in_parts ? 15 : 5)) continue;
          Machine const& runs = group == 2 && clusters == 2 ? machine : unchecked;
          EXPECT_EQ(run(runs, p, {configuration, clusters, raster, group}).d, expected)
              << to_string(c);
        }
      }
    }
    if (c.in_parts) continue;                 // these do not meet
    for (int const steps : {1, 2, 3, 100}) {  // between meetings
      for (int const clusters : {1, 3}) {
        if (!chosen(order++, 5)) continue;
        Launch const in_step{
            .configuration = configuration, .clusters = clusters, .lockstep_steps = steps};
        Machine const& runs = steps == 2 && clusters == 3 ? machine : unchecked;
        EXPECT_EQ(run(runs, p, in_step).d, expected)
            << to_string(c) << ", meetings every " << steps;
      }
    }
  }
}

// Any number of parts of K, more than it has steps among them, computed by one cluster after the
// other, by several together, or by a cluster each, which wait for each other: which part comes
// last does not show, and the next launch finds the counters of arrivals as the first did.
TEST(GemmSm90, AddsUpAnyNumberOfParts) {
  Machine const machine = test_machine(), unchecked = test_machine({.check = false});
  auto const in_parts = configurations_that([](GemmSm90Config const& c) { return c.in_parts; });
  ASSERT_FALSE(in_parts.empty());
  for (int const configuration : in_parts) {
    GemmSm90Config const& c = table()[static_cast<std::size_t>(configuration)];
    if (!plain_bf16(c)) continue;
    std::int64_t turn = configuration;
    for (int const parts : {2, 3, 7, kMostParts}) {
      if (!chosen(turn++, 2)) continue;
      GemmProblem p = problem_for(c);
      p.m = c.block_m + 1, p.n = c.block_n * c.cluster_n - 3, p.k = 6 * block_k(c) + 8;
      p.batch = parts == 3 ? 2 : 1;
      Launch launch{.configuration = configuration, .clusters = 1, .parts = parts};
      auto const expected = expect_correct(machine, p, launch).d;
      for (int const clusters : {2, 5, 1000}) {  // checked where each part has one
        launch.clusters = clusters;
        EXPECT_EQ(run(clusters == 1000 ? machine : unchecked, p, launch).d, expected)
            << to_string(c) << ", " << parts << " parts, " << clusters << " clusters";
      }
    }
  }
}

// A narrow tile's accumulators are the first of a wide one's, which saw infinities and NaNs: what
// the others still hold stays beyond its edge.
TEST(GemmSm90, KeepsTilesOfTwoWidthsApart) {
  Machine const machine = test_machine();
  for (int const configuration : configurations_that(
           [](GemmSm90Config const& c) { return plain_bf16(c) && of_two_widths(c); })) {
    GemmSm90Config const& c = table()[static_cast<std::size_t>(configuration)];
    GemmProblem p = fitted_problem(c, /*even=*/false);
    p.k = 40, p.batch = 1;
    p.a = p.b = adversarial;
    for (int const clusters : {1, 2})
      expect_correct(machine, p,
                     {.configuration = configuration, .clusters = clusters, .fitted = true});
  }
}

/// D of a problem whose C lies where D comes to, by a choice of the configuration's that `adjust`
/// may change.
template <class Adjust>
std::vector<std::uint8_t> run_in_place(Machine const& machine, GemmProblem p, int configuration,
                                       Adjust&& adjust) {
  std::vector<std::uint8_t> in_place;
  GemmSm90Config const& c = table()[static_cast<std::size_t>(configuration)];
  int const parts = Launch{}.parts;
  p.workspace = workspace_for(p, c, parts);
  run_by(machine, p, [&](GemmArguments g) {
    auto const c_values = random_elements(p.out, *g.ldc * p.m, 4 * p.seed + 2, p.c);
    Buffer<std::uint8_t> d(machine, c_values, "c and d");
    g.c = g.d = d.data();
    GemmConstraints const constraints{.kernel = gemm_sm90,
                                      .configuration = configuration,
                                      .split_k = c.in_parts ? std::optional(parts) : std::nullopt};
    GemmChoice choice = choose_gemm(g, machine.properties(), constraints);
    adjust(choice);
    gemm(machine, g, choice);
    machine.synchronize();
    in_place = d.download();
  });
  return in_place;
}

void expect_same_elements(GemmProblem const& p, std::vector<std::uint8_t> const& d,
                          std::vector<std::uint8_t> const& expected) {
  for (int i = 0; i < p.m; ++i) {
    auto const row = static_cast<std::ptrdiff_t>(i * *arguments_of(p).ldd * bits(p.out) / 8);
    auto const length = p.n * bits(p.out) / 8;
    ASSERT_TRUE(std::equal(d.begin() + row, d.begin() + row + length, expected.begin() + row))
        << "row " << i;
  }
}

TEST(GemmSm90, WritesInPlace) {
  Machine const machine = test_machine();
  for (int const configuration : one_of_each_form()) {
    GemmSm90Config const& c = table()[static_cast<std::size_t>(configuration)];
    if (c.transposed) continue;
    SCOPED_TRACE(to_string(c));
    GemmProblem p = problem_for(c);
    p.m = 100, p.n = 136, p.k = 40, p.beta = 0.5f;
    expect_same_elements(p, run_in_place(machine, p, configuration, [](GemmChoice&) {}),
                         run(machine, p, {.configuration = configuration}).d);
  }
}

// A tile's C is read while its neighbour's D is stored: no box of C may reach into the next tile.
TEST(GemmSm90, WritesInPlaceBesideItsNeighbours) {
  Machine const machine = test_machine();
  for (int const configuration : configurations_that(
           [](GemmSm90Config const& c) { return plain_bf16(c) && of_two_widths(c); })) {
    GemmSm90Config const& c = table()[static_cast<std::size_t>(configuration)];
    GemmProblem p = fitted_problem(c, true);
    p.k = 64, p.batch = 1, p.beta = 0.5f;
    for (bool const fitted : {false, true}) {
      SCOPED_TRACE(to_string(c) + (fitted ? ", of two widths" : ""));
      auto const in_place = run_in_place(machine, p, configuration, [&](GemmChoice& choice) {
        choice.clusters = fitted ? 2 : 3;
        if (!fitted) return;
        choice.tiling = fit_tiles(choice.tiling.order(), p.n, tile_widths(c), choice.clusters);
        ASSERT_TRUE(choice.tiling.fitted());
      });
      expect_same_elements(p, in_place, run(machine, p, {.configuration = configuration}).d);
    }
  }
}

TEST(GemmSm90, HasNoBankConflicts) {
  for (int const configuration : one_of_each_form()) {
    GemmSm90Config const& c = table()[static_cast<std::size_t>(configuration)];
    Machine const machine = Machine::simulated(Arch::sm90);
    GemmProblem p = problem_for(c);
    p.m = c.block_m, p.n = c.block_n, p.k = 128;
    run(machine, p, {.configuration = configuration});
    EXPECT_EQ(machine.last_report()->total.bank_conflicts, 0) << to_string(c) << "\n"
                                                              << machine.last_report()->text();
  }
}

}  // namespace
}  // namespace tegula
