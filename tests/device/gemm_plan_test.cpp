// The plan of a GEMM, over many problems: always a kernel that can compute the problem, gemm_sm90
// wherever TMA admits it, the same for the same arguments, and in accord with the list of what
// was weighed.

#include "tegula/device/gemm_plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "addresses.hpp"
#include "scratch.hpp"
#include "tegula/device/buffer.hpp"
#include "tegula/device/launch.hpp"
#include "tegula/device/selection.hpp"
#include "tegula/sim/tensor_map.hpp"

namespace tegula {
namespace {

constexpr DeviceProperties kH100 = properties_of(sim::Generation::sm90);
constexpr DeviceProperties kA100 = properties_of(sim::Generation::sm80);

using tegula::testing::at;
using tegula::testing::message_of;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::int64_t kSizes[] = {1, 7, 8, 64, 100, 127, 128, 129, 1000, 4096, 100000};

GemmArguments problem(std::int64_t m, std::int64_t n, std::int64_t k) {
  return {.in = DType::bf16,
          .m = m,
          .n = n,
          .k = k,
          .a = at(0x1000),
          .b = at(std::uintptr_t{1} << 44),
          .d = at(std::uintptr_t{2} << 44)};
}

/// Whether the tiling's regions cover D, row of tiles by row, and no row of tiles lies beyond
/// its edges.
void expect_covers(GemmArguments const& g, GemmSm90Config const& c, TilePartition const& tiling) {
  auto const [wide, narrow] = tile_widths(c);
  struct Rows {
    int count = 0;
    // those covered, from the first on; where the last tile begins
    std::int64_t columns = 0, last_tile = 0;
  };
  std::map<int, Rows> rows;  // by the first of them
  for (TileRegion const& region : tiling.regions) {
    if (region.first >= tiling.tiles) continue;
    TileScheduler const& s = region.order;
    int const width = tiling.narrow(region.first) ? narrow : wide;
    Rows& of_region = rows[region.m];
    EXPECT_TRUE(of_region.count == 0 || of_region.count == s.tiles_m)
        << to_string(g) << ": " << to_string(c);
    EXPECT_EQ(region.column, of_region.columns) << to_string(g) << ": " << to_string(c);
    of_region.count = s.tiles_m;
    of_region.columns += std::int64_t{s.tiles_n} * width;
    of_region.last_tile = of_region.columns - width;
    EXPECT_EQ(s.batches, g.batch);
    EXPECT_GE(s.group, 1);
    EXPECT_LE(s.group, s.raster == Raster::along_n ? s.tiles_m : s.tiles_n);
  }
  std::int64_t tiles_m = 0;
  for (auto const& [first, of_region] : rows) {
    EXPECT_EQ(first, tiles_m) << to_string(g) << ": " << to_string(c);
    tiles_m += of_region.count;
    EXPECT_GE(of_region.columns, g.n) << to_string(g) << ": " << to_string(c);
    EXPECT_LT(of_region.last_tile, g.n) << to_string(g) << ": " << to_string(c);
  }
  EXPECT_GE(tiles_m * c.block_m * c.cluster_m, g.m) << to_string(g) << ": " << to_string(c);
  EXPECT_LT((tiles_m - 1) * c.block_m * c.cluster_m, g.m) << to_string(g) << ": " << to_string(c);
}

/// The problem that a configuration computes instead, where its D is transposed: D^T = B^T A^T.
GemmArguments exchanged(GemmArguments g) {
  std::swap(g.m, g.n), std::swap(g.a, g.b), std::swap(g.lda, g.ldb);
  std::swap(g.a_major, g.b_major), std::swap(g.a_batch_stride, g.b_batch_stride);
  DType const in = g.in;
  g.in = g.in_b.value_or(in), g.in_b = in;
  return g;
}

/// Whether the choice's configuration is one of the problem's types and majors.
void expect_fits(GemmArguments const& arguments, GemmChoice const& choice) {
  GemmArguments g = with_defaults(arguments);
  if (choice.kernel == gemm_sm90) {
    GemmSm90Config const& c = configuration(gemm_sm90, choice.configuration);
    if (c.transposed) g = exchanged(g);
    EXPECT_TRUE(c.a == g.in && c.b == g.in_b && c.out == g.out) << to_string(c);
    EXPECT_TRUE(c.a_major == g.a_major && c.b_major == g.b_major) << to_string(c);
    EXPECT_EQ(c.activates, g.activation != Activation::none);
    expect_covers(g, c, choice.tiling);
    EXPECT_GE(choice.clusters, 1);
    EXPECT_LE(choice.clusters, choice.tiling.tiles);
    if (c.split_k > 1) {
      EXPECT_EQ(choice.clusters, choice.tiling.tiles) << "a cluster computes one tile";
    } else {
      EXPECT_LE(choice.clusters * cluster_size(c), 132 * c.min_ctas_per_sm);
    }
  } else {
    GemmConfig const& c = configuration(gemm_sm80, choice.configuration);
    EXPECT_TRUE(c.in == g.in && c.in == g.in_b && c.out == g.out) << to_string(c);
    EXPECT_TRUE(c.a_major == g.a_major && c.b_major == g.b_major) << to_string(c);
    EXPECT_LE(c.vector_bytes, vector_bytes(g));
  }
}

TEST(GemmPlan, FindsAKernelForEveryCheckedProblemOf16Bits) {
  std::map<FamilyId, int> kernels;
  for (DType const in : {DType::f16, DType::bf16})
    for (DType const out : {DType::f16, DType::bf16, DType::f32})
      for (Major const a_major : {Major::k, Major::mn})
        for (Major const b_major : {Major::k, Major::mn})
          for (Activation const activation : {Activation::none, Activation::gelu})
            for (auto const m : kSizes)
              for (auto const n : kSizes)
                for (std::int64_t const k : {1, 8, 33, 1024}) {
                  GemmArguments const g = {.in = in,
                                           .out = out,
                                           .a_major = a_major,
                                           .b_major = b_major,
                                           .m = m,
                                           .n = n,
                                           .k = k,
                                           .batch = m == 100 ? 3 : 1,
                                           .a = at(0x1000),
                                           .b = at(std::uintptr_t{1} << 44),
                                           .d = at(std::uintptr_t{2} << 44),
                                           .activation = activation};
                  check(g, 90);
                  GemmChoice const choice = choose_gemm(g, kH100);
                  expect_fits(g, choice);
                  EXPECT_GT(choice.cost.total, 0);
                  ++kernels[choice.kernel];
                  expect_fits(g, choose_gemm(g, kA100));
                  EXPECT_EQ(choose_gemm(g, kA100).kernel, gemm_sm80);
                  if (in == out && a_major == Major::k && b_major == Major::k) {
                    EXPECT_EQ(choice.kernel == gemm_sm90, tma_obstacle(g).empty()) << to_string(g);
                  }
                }
  EXPECT_GT(kernels[gemm_sm80], 1000);
  EXPECT_GT(kernels[gemm_sm90], 1000);
}

TEST(GemmPlan, HasEveryTypeThatTheTensorCoresMultiply) {
  struct Types {
    DType a, b;
  };
  for (auto const& [a, b] : {Types{DType::tf32, DType::tf32},
                             {DType::e4m3, DType::e4m3},
                             {DType::e4m3, DType::e5m2},
                             {DType::e5m2, DType::e4m3},
                             {DType::e5m2, DType::e5m2},
                             {DType::f16, DType::f16},
                             {DType::bf16, DType::bf16}})
    for (DType const out : {DType::f16, DType::bf16, DType::f32})
      for (auto const m : {1, 128, 5000}) {
        GemmArguments g = problem(m, 512, 512);
        g.in = a, g.in_b = b, g.out = out;
        check(g, 90);
        GemmChoice const choice = choose_gemm(g, kH100);
        expect_fits(g, choice);
      }
}

TEST(GemmPlan, FallsBackWhereTmaCannotAddressTheProblem) {
  auto const obstacle = [](auto&& change) {
    GemmArguments g = problem(64, 64, 64);
    change(g);
    EXPECT_NO_THROW(check(g, 90));
    std::string const text = tma_obstacle(g);
    EXPECT_EQ(choose_gemm(g, kH100).kernel, text.empty() ? FamilyId(gemm_sm90) : gemm_sm80) << text;
    EXPECT_THAT(plan_gemm(g, kH100).reason, HasSubstr(text));
    return text;
  };
  EXPECT_EQ(obstacle([](auto&) {}), "");
  EXPECT_EQ(obstacle([](auto& g) { g.a = at(0x1008); }),
            "a is 0x1008, 8 bytes past a multiple of 16");
  EXPECT_THAT(obstacle([](auto& g) { g.b = at(0x2002); }), HasSubstr("b is 0x2002"));
  EXPECT_THAT(obstacle([](auto& g) { g.d = at(0x3004); }), HasSubstr("d is 0x3004"));
  EXPECT_THAT(obstacle([](auto& g) { g.c = at(0x4008), g.beta = 1; }), HasSubstr("c is 0x4008"));
  EXPECT_THAT(obstacle([](auto& g) { g.bias = at(0x4002); }), HasSubstr("bias is 0x4002"));
  EXPECT_EQ(obstacle([](auto& g) { g.c = at(0x4008), g.beta = 0; }), "") << "c is not read";
  EXPECT_EQ(obstacle([](auto& g) { g.lda = 65; }),
            "lda is 65 elements of 2 bytes, which is not a multiple of 16 bytes");
  EXPECT_THAT(obstacle([](auto& g) { g.ldb = 68; }), HasSubstr("ldb is 68"));
  EXPECT_THAT(obstacle([](auto& g) { g.ldd = 66; }), HasSubstr("ldd is 66"));
  EXPECT_THAT(obstacle([](auto& g) { g.c = at(0x4000), g.beta = 1, g.ldc = 66; }),
              HasSubstr("ldc is 66"));
  EXPECT_THAT(obstacle([](auto& g) { g.lda = std::int64_t{1} << 39; }),
              HasSubstr("below 2^40 bytes"));
  EXPECT_EQ(obstacle([](auto& g) { g.lda = 72; }), "");
  EXPECT_EQ(obstacle([](auto& g) { g.k = 63, g.lda = g.ldb = 64; }), "")
      << "TMA clips a row itself";
  EXPECT_EQ(obstacle([](auto& g) { g.m = 1, g.lda = 65, g.ldd = 67; }), "")
      << "a single row has no stride";
  EXPECT_THAT(obstacle([](auto& g) { g.batch = 2, g.a_batch_stride = 4100; }),
              HasSubstr("a_batch_stride is 4100"));
  EXPECT_THAT(obstacle([](auto& g) { g.batch = 2, g.d_batch_stride = 4100; }),
              HasSubstr("d_batch_stride is 4100"));
  EXPECT_EQ(obstacle([](auto& g) { g.a_batch_stride = 4100; }), "")
      << "a single batch has no stride";
  EXPECT_EQ(obstacle([](auto& g) { g.batch = 2, g.a_batch_stride = 0; }), "");
}

TEST(GemmPlan, CopiesSingleElementsOnlyWhereItMust) {
  auto const bytes = [](auto&& change) {
    GemmArguments g = problem(64, 64, 64);
    change(g);
    GemmChoice const choice = choose_gemm(g, kA100);
    int const chosen = configuration(gemm_sm80, choice.configuration).vector_bytes;
    EXPECT_EQ(chosen, vector_bytes(g));
    return chosen;
  };
  EXPECT_EQ(bytes([](auto&) {}), 16);
  EXPECT_EQ(bytes([](auto& g) { g.a = at(0x1008); }), 2);
  EXPECT_EQ(bytes([](auto& g) { g.b = at(0x2002); }), 2);
  EXPECT_EQ(bytes([](auto& g) { g.lda = 65; }), 2);
  EXPECT_EQ(bytes([](auto& g) { g.ldb = 68; }), 2);
  EXPECT_EQ(bytes([](auto& g) { g.lda = 72; }), 16);
  EXPECT_EQ(bytes([](auto& g) { g.d = at(0x3002), g.ldd = 65; }), 16)
      << "D's alignment is the epilogue's own affair";
  EXPECT_EQ(bytes([](auto& g) { g.m = 13, g.n = 17; }), 16);
  EXPECT_EQ(bytes([](auto& g) { g.k = 63; }), 2) << "the last vector of a row would cross its edge";
  EXPECT_EQ(bytes([](auto& g) { g.batch = 2, g.a_batch_stride = 4100; }), 2);
  EXPECT_EQ(bytes([](auto& g) { g.a_batch_stride = 4100; }), 16) << "a single batch has no stride";
}

// The plan is the choice, spelt out.
TEST(GemmPlan, ListsWhatWasWeighedTheChosenFirst) {
  for (auto const m : kSizes) {
    GemmArguments const g = problem(m, 4096, 1024);
    GemmPlan const plan = plan_gemm(g, kH100);
    GemmChoice const choice = choose_gemm(g, kH100);
    EXPECT_EQ(plan.chosen().configuration, choice.configuration);
    EXPECT_EQ(plan.chosen().cost.total, choice.cost.total);
    EXPECT_EQ(plan.candidates.size(),
              configurations(gemm_sm80).size() + configurations(gemm_sm90).size() +
                  configurations(gemm_sm100).size() + configurations(scaled_gemm_sm100).size());
    bool refused = false;
    double last = 0;
    for (GemmCandidate const& candidate : plan.candidates) {
      if (!candidate.refused.empty()) {
        refused = true;
        continue;
      }
      EXPECT_FALSE(refused) << "the refused come last";
      EXPECT_GE(candidate.choice.cost.total, last);
      last = candidate.choice.cost.total;
      GemmCost const& c = candidate.choice.cost;
      EXPECT_GE(c.total, c.launch + c.fill + c.epilogue + std::max({c.tensor, c.l2, c.dram}))
          << candidate.name;
    }
    EXPECT_TRUE(refused);
    std::string const text = to_string(plan);
    EXPECT_THAT(text, AllOf(HasSubstr(plan.candidates.front().name), HasSubstr(plan.reason),
                            HasSubstr("refused: other operand types")));
    EXPECT_LT(text.size(), to_string(plan, /*all=*/true).size());
  }
}

// What any sensible model says.
TEST(GemmPlan, PredictsSensibly) {
  auto const chosen = [](std::int64_t m, std::int64_t n, std::int64_t k) {
    return configuration(gemm_sm90, choose_gemm(problem(m, n, k), kH100).configuration);
  };
  EXPECT_GE(chosen(8192, 8192, 8192).block_m * chosen(8192, 8192, 8192).block_n, 128 * 176)
      << "large problems take a tile that reads little";
  EXPECT_EQ(chosen(64, 4096, 7168).block_m, 64) << "no tile of 128 rows for 64";
  EXPECT_GT(chosen(64, 1024, 16384).split_k, 1) << "few tiles of much work share K";
  EXPECT_EQ(chosen(8192, 8192, 512).split_k, 1);

  GemmSm90Config const tile = {};
  double before = 0;
  for (std::int64_t const m : {128, 1024, 4096, 16384}) {
    double const total = predict(problem(m, 4096, 4096), tile, kH100).cost.total;
    EXPECT_GT(total, before) << "more rows take longer";
    before = total;
  }
  GemmArguments g = problem(4096, 4096, 4096);
  double const plain = predict(g, tile, kH100).cost.total;
  g.beta = 1;
  EXPECT_GT(predict(g, tile, kH100).cost.total, plain) << "reading C takes time";
  double const tensor = 4096.0 * 4096 * 4096 / (2048 * 132 * 1.5e3);
  EXPECT_GT(plain, tensor) << "faster than the tensor cores";
  EXPECT_LT(plain, 2 * tensor);
  EXPECT_GT(predict(problem(64, 64, 64), tile, kH100).cost.dram, 0);

  GemmSm90Config cluster = tile;
  cluster.cluster_m = 2;
  EXPECT_LT(predict(g, cluster, kH100).cost.l2, predict(g, tile, kH100).cost.l2)
      << "multicast saves traffic";
  GemmCostModel slow;
  slow.launch_us += 100;
  EXPECT_NEAR(predict(g, tile, kH100, {}, slow).cost.total - predict(g, tile, kH100).cost.total,
              100, 1e-9);
}

// gemm_sm80's estimate: rounds of CTAs times the work of one.
TEST(GemmPlan, WeighsTilesOfSm80ByRoundsOfCtas) {
  std::vector<GemmConfig> const table = {{.block_m = 64, .block_n = 64},
                                         {.block_m = 128, .block_n = 128},
                                         {.block_m = 128, .block_n = 256}};
  auto const best = [&](std::int64_t m, std::int64_t n) {
    std::vector<double> cost;
    for (GemmConfig const& c : table)
      cost.push_back(predict(problem(m, n, 1024), c, kH100).cost.total);
    return std::min_element(cost.begin(), cost.end()) - cost.begin();
  };
  EXPECT_EQ(best(8192, 8192), 2) << "large problems take the tile that copies least";
  EXPECT_EQ(best(64, 64), 0) << "small problems take the tile that computes least beyond the edge";
  EXPECT_EQ(best(1408, 1536), 1) << "132 CTAs of 128 x 128 make exactly one round";
}

// The tiles in flight should cover a block that reads about as much of A as of B.
TEST(GemmPlan, OrdersTilesForL2) {
  GemmSm90Config const tile = {.block_m = 128, .block_n = 256, .cluster_m = 2};
  TileScheduler const square = predict(problem(16384, 16384, 8192), tile, kH100).tiling.order();
  double const across = (square.raster == Raster::along_n ? 256.0 : 256.0) * square.group;
  EXPECT_GT(across, std::sqrt(66.0 * 256 * 256) / 1.5);
  EXPECT_LT(across, std::sqrt(66.0 * 256 * 256) * 1.5);
  // All of A is as much as a band: one band along n reads both operands once.
  TileScheduler const flat = predict(problem(256, 100000, 8192), tile, kH100).tiling.order();
  EXPECT_EQ(flat.raster, Raster::along_n);
  EXPECT_EQ(flat.group, 1);
  // With little K memory takes about as long as the tensor cores: one band, which reads each
  // operand once.
  TileScheduler const shallow = predict(problem(4096, 32768, 512), tile, kH100).tiling.order();
  EXPECT_EQ(shallow.raster, Raster::along_n);
  EXPECT_EQ(shallow.group, 16);
  // A tile that reads more of B than of A, and more rows of them than GPCs: as many columns of
  // tiles across.
  GemmSm90Config const wide = {.block_m = 64, .block_n = 128, .schedule = Schedule::basic};
  TileScheduler const columns = predict(problem(1024, 1024, 1024), wide, kH100).tiling.order();
  EXPECT_EQ(columns.raster, Raster::along_m);
  EXPECT_EQ(columns.group, 8);
  EXPECT_EQ(predict(problem(128, 24576, 1536), wide, kH100).tiling.order().raster, Raster::along_n);
}

// Bound by memory, two waves of which the second has half the SMs are worse than full ones.
TEST(GemmPlan, KeepsMemoryBusyInTheLastWave) {
  GemmCostModel indifferent;
  indifferent.uneven_loss = 0;
  auto const loss = [&](std::int64_t n) {
    GemmSm90Config const tile = {.block_m = 64, .block_n = 128, .schedule = Schedule::basic};
    GemmArguments const g = problem(64, n, 4096);
    return predict(g, tile, kH100).cost.total - predict(g, tile, kH100, {}, indifferent).cost.total;
  };
  EXPECT_GT(loss(198 * 128), 0.3) << "one wave and a half";
  EXPECT_LT(loss(264 * 128), 1e-9) << "two waves";
  EXPECT_LT(loss(132 * 128), 1e-9) << "one wave";
}

// Meetings cost time, too: they are for operands that L2 does not hold, and for tiles of
// many steps.
TEST(GemmPlan, KeepsClustersInStepWhereOperandsAreLarge) {
  auto const steps = [](std::int64_t m, std::int64_t n, std::int64_t k) {
    return choose_gemm(problem(m, n, k), kH100).lockstep_steps;
  };
  EXPECT_EQ(steps(16384, 16384, 16384), 64);
  EXPECT_EQ(steps(8192, 28672, 8192), 64);
  EXPECT_EQ(steps(4096, 7168, 16384), 64);
  EXPECT_EQ(steps(4096, 14336, 4096), 0) << "64 steps a tile";
  EXPECT_EQ(steps(131072, 131072, 2048), 0) << "32 steps a tile, 1 GB of operands";
  EXPECT_EQ(steps(8192, 8192, 8192), 0) << "268 MB of operands";
  EXPECT_EQ(steps(64, 7168, 65536), 0) << "one tile a CTA";
  GemmSm90Config const split{
      .block_m = 64, .block_n = 64, .schedule = Schedule::basic, .split_k = 2};
  EXPECT_EQ(predict(problem(4096, 7168, 32768), split, kH100).lockstep_steps, 0);
}

// 128 tiles of 128 x 256 in one wave: 64 KB of each SM, all at once. Where SMs wait for memory they
// do not finish in step.
TEST(GemmPlan, CountsTheLastStoresOfAllSms) {
  GemmSm90Config const tile{.block_m = 128, .block_n = 256, .cluster_m = 2};
  GemmCostModel slow;
  slow.store_tb_per_s = 1;
  auto const epilogue = [&](GemmArguments const& g, GemmCostModel const& model) {
    return predict(g, tile, kH100, {}, model).cost.epilogue;
  };
  EXPECT_NEAR(epilogue(problem(2048, 2048, 2048), {}),
              128 * 65536 / (GemmCostModel{}.store_tb_per_s * 1e6), 1e-9);
  EXPECT_NEAR(epilogue(problem(2048, 2048, 2048), slow), 128 * 65536 / 1e6, 1e-9);
  GemmArguments const by_memory = problem(4096, 32768, 64);
  EXPECT_EQ(epilogue(by_memory, {}), epilogue(by_memory, slow));
}

// Tiles of two widths, where the last wave of equal tiles is not full.
TEST(GemmPlan, FitsTilesToTheClusters) {
  GemmSm90Config const tile = {.block_m = 128, .block_n = 256, .cluster_m = 2, .narrow_n = 240};
  auto const predicted = [&](GemmArguments const& g, GemmConstraints const& wanted = {}) {
    GemmChoice const choice = predict(g, tile, kH100, wanted);
    expect_covers(g, tile, choice.tiling);
    EXPECT_GE(choice.clusters, 1);
    EXPECT_LE(choice.clusters, 66);
    EXPECT_EQ(choice.cost.tiles, 2 * choice.tiling.tiles);
    EXPECT_EQ(choice.cost.waves, (choice.tiling.tiles + 65) / 66);
    if (!choice.tiling.fitted()) {
      EXPECT_EQ(choice.cost.share, choice.cost.waves);
    }
    return choice;
  };
  // 256 tiles in four waves of 66 clusters; or 196 wide ones and 64 narrow ones in as many.
  GemmArguments const g = problem(4096, 4096, 4096);
  GemmChoice const fitted = predicted(g), equal = predicted(g, {.fitted = false});
  EXPECT_EQ(predicted(g, {.fitted = true}).tiling, fitted.tiling);
  EXPECT_FALSE(equal.tiling.fitted());
  EXPECT_EQ(equal.tiling.tiles, 256);
  EXPECT_EQ(equal.cost.share, 4);
  EXPECT_EQ(fitted.tiling.tiles, 260);
  EXPECT_EQ(fitted.tiling.first_narrow, 196);
  EXPECT_EQ(fitted.clusters, 66);
  // The busiest SM has one narrow tile; each costs an epilogue, too, whatever its width.
  EXPECT_GE(fitted.cost.share, (3 * 256 + 240) / 256.0);
  EXPECT_LT(fitted.cost.share, fitted.cost.waves);
  EXPECT_NEAR(fitted.cost.tensor, equal.cost.tensor * fitted.cost.share / 4,
              1e-9 * equal.cost.tensor);
  EXPECT_LT(fitted.cost.total, equal.cost.total);

  // A tile a cluster, or full waves: narrower tiles gain nothing. Nor are there any in a
  // kernel without.
  EXPECT_FALSE(predicted(problem(2048, 2048, 4096), {.fitted = true}).tiling.fitted());
  EXPECT_FALSE(predicted(problem(3072, 256 * 11, 4096), {.fitted = true}).tiling.fitted())
      << "132 tiles";
  GemmSm90Config plain = tile;
  plain.narrow_n = 0;
  EXPECT_EQ(predict(g, plain, kH100, {.fitted = true}).tiling, equal.tiling);
  EXPECT_EQ(predict(g, plain, kH100).cost.total, equal.cost.total);

  // Fitted where the caller wants it, though it gains little, or memory takes long.
  for (GemmArguments const& little : {problem(32768, 32768, 8192), problem(4096, 4096, 512)}) {
    EXPECT_FALSE(predicted(little).tiling.fitted()) << to_string(little);
    EXPECT_EQ(predicted(little).tiling, predicted(little, {.fitted = false}).tiling);
    EXPECT_TRUE(predicted(little, {.fitted = true}).tiling.fitted()) << to_string(little);
  }
  GemmCostModel eager;
  eager.fitted_gain = 0;
  EXPECT_TRUE(predict(problem(32768, 32768, 8192), tile, kH100, {}, eager).tiling.fitted());
  eager.fitted_dram_cooperative = 10;
  EXPECT_TRUE(predict(problem(4096, 4096, 512), tile, kH100, {}, eager).tiling.fitted());

  // Of the table as of the single configuration.
  GemmConstraints const large{.block_n = 256, .fitted = false};
  EXPECT_FALSE(choose_gemm(g, kH100, large).tiling.fitted());
  EXPECT_EQ(choose_gemm(g, kH100, {.block_n = 256}).tiling, fitted.tiling);
}

TEST(GemmPlan, KeepsToConstraints) {
  GemmArguments const g = problem(4096, 4096, 4096);
  auto const configuration = [&](GemmConstraints const& wanted) {
    GemmChoice const choice = choose_gemm(g, kH100, wanted);
    EXPECT_EQ(choice.kernel, gemm_sm90);
    EXPECT_EQ(plan_gemm(g, kH100, wanted).chosen().configuration, choice.configuration);
    return tegula::configuration(gemm_sm90, choice.configuration);
  };
  EXPECT_EQ(configuration({.schedule = Schedule::pingpong}).schedule, Schedule::pingpong);
  EXPECT_EQ(configuration({.schedule = Schedule::basic}).schedule, Schedule::basic);
  EXPECT_EQ(configuration({.block_m = 64, .block_n = 64}).block_n, 64);
  EXPECT_EQ(configuration({.split_k = 4}).split_k, 4);
  GemmSm90Config const cluster = configuration({.cluster_m = 1, .cluster_n = 1});
  EXPECT_EQ(cluster.cluster_m * cluster.cluster_n, 1);
  EXPECT_EQ(choose_gemm(g, kH100, {.configuration = 3}).configuration, 3);
  GemmChoice const sm80 = choose_gemm(g, kH100, {.kernel = gemm_sm80});
  EXPECT_EQ(sm80.kernel, gemm_sm80);
  EXPECT_EQ(choose_gemm(g, kH100, {.kernel = gemm_sm80, .configuration = sm80.configuration})
                .configuration,
            sm80.configuration);
  for (Raster const raster : {Raster::along_m, Raster::along_n}) {
    GemmChoice const choice = choose_gemm(g, kH100, {.raster = raster, .group = 3});
    EXPECT_EQ(choice.tiling.order().raster, raster);
    EXPECT_EQ(choice.tiling.order().group, 3);
  }
  TileScheduler const small =
      choose_gemm(problem(64, 64, 64), kH100, {.raster = Raster::along_m, .group = 100})
          .tiling.order();
  EXPECT_EQ(small.group, small.tiles_n) << "no more than there are";

  auto const refusal = [&](GemmArguments const& arguments, GemmConstraints const& wanted) {
    std::string const sentence =
        message_of<argument_error>([&] { choose_gemm(arguments, kH100, wanted); });
    EXPECT_EQ(message_of<argument_error>([&] { plan_gemm(arguments, kH100, wanted); }), sentence);
    return sentence;
  };
  EXPECT_THAT(refusal(g, {.block_m = 96}),
              AllOf(HasSubstr("asked for"), HasSubstr("m 4096, n 4096, k 4096")));
  EXPECT_THAT(refusal(g, {.configuration = 100000}), HasSubstr("asked for"));
  GemmArguments odd = g;
  odd.lda = 4097;
  EXPECT_THAT(refusal(odd, {.kernel = gemm_sm90}), HasSubstr("asked for"));
  EXPECT_THAT(refusal(odd, {.schedule = Schedule::basic}), HasSubstr("asked for"));
}

// What is worth timing: the default choice first, others of about its predicted time, none twice.
TEST(GemmPlan, ProposesChoicesToTime) {
  for (GemmArguments const& g :
       {problem(4096, 7168, 2048), problem(1024, 1024, 1024), problem(64, 7168, 2048),
        problem(1, 1, 1), problem(128, 2112, 7168)}) {
    GemmChoice const chosen = choose_gemm(g, kH100);
    for (int const most : {1, 2, 8, 100}) {
      std::vector<GemmChoice> const all = tuning_candidates(g, kH100, most);
      ASSERT_GE(all.size(), 1u);
      ASSERT_LE(all.size(), static_cast<std::size_t>(most));
      EXPECT_EQ(all[0].configuration, chosen.configuration);
      EXPECT_EQ(all[0].tiling, chosen.tiling);
      for (std::size_t i = 0; i < all.size(); ++i) {
        expect_fits(g, all[i]);
        EXPECT_EQ(all[i].kernel, gemm_sm90);
        for (std::size_t j = 0; j < i; ++j)
          EXPECT_FALSE(all[i].configuration == all[j].configuration &&
                       all[i].tiling == all[j].tiling);
      }
    }
  }
  std::vector<GemmChoice> const large = tuning_candidates(problem(4096, 7168, 2048), kH100);
  EXPECT_EQ(large.size(), 8u);
  std::set<int> configurations;
  for (GemmChoice const& choice : large) configurations.insert(choice.configuration);
  EXPECT_GE(configurations.size(), 2u);
  for (GemmChoice const& choice :
       tuning_candidates(problem(4096, 7168, 2048), kH100, 8, {.group = 3}))
    EXPECT_EQ(choice.tiling.order().group, 3);
  GemmArguments odd = problem(4096, 4096, 4096);
  odd.lda = 4097;  // gemm_sm80's
  for (GemmChoice const& choice : tuning_candidates(odd, kH100))
    EXPECT_EQ(choice.kernel, gemm_sm80);
  EXPECT_THAT(
      message_of<argument_error>([&] { tuning_candidates(odd, kH100, 8, {.block_m = 96}); }),
      HasSubstr("asked for"));
}

TEST(GemmPlan, ComputesEveryEpilogueOfEveryType) {
  constexpr DType fp8[] = {DType::e4m3, DType::e5m2};
  std::vector<std::pair<DType, DType>> operands = {
      {DType::f16, DType::f16}, {DType::bf16, DType::bf16}, {DType::tf32, DType::tf32}};
  for (DType const a : fp8)
    for (DType const b : fp8) operands.emplace_back(a, b);
  for (auto const& [a, b] : operands)
    for (DType const out : {DType::f16, DType::bf16, DType::f32})
      for (Activation const activation :
           {Activation::none, Activation::relu, Activation::gelu, Activation::silu}) {
        GemmArguments g = problem(64, 64, 64);
        g.in = a, g.in_b = b, g.out = out, g.activation = activation;
        check(g, 90);
        expect_fits(g, choose_gemm(g, kH100));
      }
}

TEST(GemmPlan, SaysWhatNoConfigurationComputes) {
  GemmArguments g = problem(64, 64, 64);
  g.activation = Activation::silu;
  DeviceProperties tiny = kA100;
  tiny.shared_bytes = 1024;
  EXPECT_THAT(message_of<argument_error>([&] { choose_gemm(g, tiny); }),
              AllOf(HasSubstr("no configuration of this build"), HasSubstr("silu(A B)"),
                    HasSubstr("gemm_sm90 does not, for the device is sm_80")));
  GemmArguments small = problem(64, 64, 64);
  small.lda = 65;
  EXPECT_THAT(plan_gemm(small, kH100).reason, HasSubstr("lda is 65"));
  EXPECT_THAT(plan_gemm(problem(64, 64, 64), kA100).reason, HasSubstr("the device is sm_80"));
}

TEST(GemmPlan, PrintsTheProblem) {
  GemmArguments g = problem(1, 2, 3);
  EXPECT_EQ(to_string(g), "D = A B: m 1, n 2, k 3, A bf16 k-major, B bf16 k-major, D bf16");
  g.batch = 4, g.alpha = 2, g.beta = 0.5f, g.bias = at(0x1000), g.activation = Activation::relu;
  g.scale_a = at<float>(0x2000), g.b_major = Major::mn, g.out = DType::f32;
  EXPECT_EQ(
      to_string(g),
      "D = relu(2 scale_a A B + 0.5 C + bias): m 1, n 2, k 3, batch 4, A bf16 k-major, B bf16 mn-major, D f32");
}

// What the kernel expects of its tensor maps, for every configuration: the boxes of a stage's tile.
TEST(GemmPlan, MakesParametersForEveryConfiguration) {
  Machine const machine = Machine::simulated(Arch::sm90);
  Buffer<float> const a(machine, 4096, "A"), b(machine, 4096, "B"), d(machine, 65536, "D");
  for (int i = 0; i < static_cast<int>(configurations(gemm_sm90).size()); ++i) {
    GemmSm90Config const& c = configuration(gemm_sm90, i);
    GemmArguments g = {.in = c.a,
                       .in_b = c.b,
                       .out = c.out,
                       .a_major = c.a_major,
                       .b_major = c.b_major,
                       .m = 48,
                       .n = 32,
                       .k = 64,
                       .batch = 2,
                       .a = a.data(),
                       .b = b.data(),
                       .c = d.data(),
                       .d = d.data(),
                       .a_batch_stride = 0,
                       .beta = 1,
                       .activation = c.activates ? Activation::relu : Activation::none};
    if (c.transposed) {  // the caller's A is the kernel's B
      g = exchanged(g);
      g.c = nullptr, g.beta = 0;
    }
    check(g, 90);
    GemmChoice const choice = choose_gemm(g, kH100, {.configuration = i});
    EXPECT_EQ(choice.configuration, i) << to_string(c);
    GemmSm90Params const p = lower(machine, g, choice);
    EXPECT_FALSE(p.problem.a_batched);
    EXPECT_TRUE(p.problem.b_batched);
    EXPECT_EQ(p.epilogue.c_batched, !c.transposed);
    EXPECT_TRUE(p.problem.m == 48 && p.problem.n == 32 && p.problem.k == 64);
    EXPECT_EQ(p.schedule.tiling.tiles, choice.tiling.tiles);
    EXPECT_EQ(p.schedule.clusters, choice.clusters);
    auto const map = [](TensorMap const& m) { return *sim::decode(m); };
    TensorMapDescription const of_a = map(p.problem.a), of_b = map(p.problem.b),
                               of_d = map(p.epilogue.d.whole);
    EXPECT_EQ(box_bytes(of_a) * a_fetch(c).boxes_mn, 128 * c.block_m) << to_string(c);
    EXPECT_EQ(box_bytes(of_b) * b_fetch(c).boxes_mn, 128 * c.block_n) << to_string(c);
    EXPECT_EQ(of_a.swizzle, TmaSwizzle::b128);
    EXPECT_EQ(of_a.extents[2], 1);
    EXPECT_EQ(of_b.extents[2], 2);
    EXPECT_EQ(of_d, map(p.epilogue.c.whole));
    EXPECT_EQ(span_bytes(of_d.swizzle),
              (c.transposed ? 64 : store_n(epilogue(c))) * bits(c.out) / 8);
    EXPECT_EQ(of_d.extents[c.transposed ? 1 : 0], 32);
    EXPECT_EQ(of_d.extents[c.transposed ? 0 : 1], 48);
  }
}

// Where D has tiles of two widths, the map of a narrower tile's last piece; elsewhere that of D.
TEST(GemmPlan, MakesParametersForTilesOfTwoWidths) {
  Machine const machine = Machine::simulated(Arch::sm90);
  Buffer<float> const a(machine, 4096, "A"), b(machine, 4096, "B"), d(machine, 4096, "D");
  int count = 0;
  for (int i = 0; i < static_cast<int>(configurations(gemm_sm90).size()); ++i) {
    GemmSm90Config const& c = configuration(gemm_sm90, i);
    if (c.narrow_n == 0) continue;
    SCOPED_TRACE(to_string(c));
    GemmArguments const g = {.in = c.a,
                             .in_b = c.b,
                             .out = c.out,
                             .a_major = c.a_major,
                             .b_major = c.b_major,
                             .m = c.block_m * c.cluster_m,
                             .n = tile_widths(c).wide + tile_widths(c).narrow - 5,
                             .k = 64,
                             .batch = 2,
                             .a = a.data(),
                             .b = b.data(),
                             .d = d.data(),
                             .lda = c.a_major == Major::k ? 64 : 512,
                             .ldb = c.b_major == Major::k ? 64 : 512,
                             .ldd = 512,
                             .activation = c.activates ? Activation::relu : Activation::none};
    check(g, 90);
    GemmChoice choice = choose_gemm(g, kH100, {.configuration = i});
    auto const map = [](TensorMap const& m) { return *sim::decode(m); };
    GemmSm90Params const equal = lower(machine, g, choice);
    EXPECT_FALSE(equal.schedule.tiling.fitted());
    EXPECT_EQ(map(equal.epilogue.d.last_narrow), map(equal.epilogue.d.whole));
    choice.clusters = 2;
    choice.tiling = fit_tiles(choice.tiling.order(), static_cast<int>(g.n), tile_widths(c), 2);
    ASSERT_TRUE(choice.tiling.fitted());
    GemmSm90Params const p = lower(machine, g, choice);
    EXPECT_EQ(p.schedule.tiling, choice.tiling);
    EXPECT_EQ(p.schedule.clusters, 2);
    TensorMapDescription last = map(p.epilogue.d.whole);
    EXPECT_EQ(last, map(equal.epilogue.d.whole));
    EXPECT_EQ(map(p.problem.b), map(equal.problem.b))
        << "a narrow tile's operands are those of a wide one";
    int const piece = store_n(epilogue(c)), pieces = c.narrow_n / piece * piece;
    last.box[0] = pieces < c.narrow_n ? c.narrow_n - pieces : piece;
    EXPECT_EQ(map(p.epilogue.d.last_narrow), last);
    EXPECT_EQ(last.box[1], 16);
    ++count;
  }
  EXPECT_GT(count, 15);
}

}  // namespace
}  // namespace tegula
