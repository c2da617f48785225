// What the model of the GPU predicts of a GEMM, and the tiles that it chooses by that.

#include "tegula/device/gemm_plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "gemm_plan_problems.hpp"
#include "tegula/device/selection.hpp"

namespace tegula {
namespace {

using tegula::testing::expect_covers;
using tegula::testing::kH100;
using tegula::testing::model_alone;
using tegula::testing::problem;

// What any sensible model says.
TEST(GemmPlan, PredictsSensibly) {
  auto const chosen = [](std::int64_t m, std::int64_t n, std::int64_t k) {
    return configuration(gemm_sm90, choose_gemm(problem(m, n, k), kH100).configuration);
  };
  // On an H200 the fastest there has 128 x 160 (1,505 us; 128 x 256 takes 1,558).
  EXPECT_GE(chosen(8192, 8192, 8192).block_m * chosen(8192, 8192, 8192).block_n, 128 * 160)
      << "large problems take a tile that reads little";
  GemmSm90Config const low = chosen(64, 4096, 7168);
  EXPECT_LE(low.transposed ? low.block_n : low.block_m, 64) << "no tile of 128 rows for 64";
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
  GemmCostModel const model = model_alone();
  GemmCostModel slow = model;
  slow.sm90.launch_us += 100;
  EXPECT_NEAR(
      predict(g, tile, kH100, {}, slow).cost.total - predict(g, tile, kH100, {}, model).cost.total,
      100, 1e-9);
}

// What was learned is one factor of about 1, and nothing else changes by it.
TEST(GemmPlan, CorrectsPredictionsByWhatWasLearned) {
  int changed = 0;
  for (std::int64_t const m : {1, 17, 307, 1024, 5000}) {
    for (std::int64_t const n : {64, 360, 4096}) {
      for (std::int64_t const k : {8, 1000, 14472}) {
        GemmArguments const g = problem(m, n, k);
        GemmPlan const plan = plan_gemm(g, kH100);
        EXPECT_EQ(choose_gemm(g, kH100).configuration, plan.chosen().configuration);
        for (GemmCandidate const& candidate : plan.candidates) {
          if (!candidate.refused.empty()) continue;
          GemmSm90Config const& c = configuration(gemm_sm90, candidate.choice.configuration);
          GemmChoice const choice = predict(g, c, kH100);
          GemmChoice const model = predict(g, c, kH100, {}, model_alone());
          EXPECT_EQ(model.cost.correction, 1);
          EXPECT_GE(choice.cost.correction, GemmCostModel{}.sm90.least_correction);
          EXPECT_LT(choice.cost.correction, 1.8);
          EXPECT_DOUBLE_EQ(choice.cost.total, model.cost.total * choice.cost.correction);
          EXPECT_EQ(choice.cost.tensor, model.cost.tensor);
          EXPECT_EQ(choice.cost.dram, model.cost.dram);
          EXPECT_EQ(choice.tiling, model.tiling);
          changed += choice.cost.correction != 1 ? 1 : 0;
        }
      }
    }
  }
  EXPECT_GT(changed, 100);
}

// Clusters in which all CTAs share A are walked in bands of as many tiles as there are GPCs, along
// M, so that those of a GPC share B; and the other way round. Not where D has fewer tiles across,
// and not over many waves.
TEST(GemmPlan, HasClustersOfAGpcShareTheOtherOperand) {
  auto const order = [](GemmArguments const& g, int cluster_m, int cluster_n) {
    GemmSm90Config const c = {.block_m = 64,
                              .block_n = 128,
                              .schedule = Schedule::basic,
                              .cluster_m = cluster_m,
                              .cluster_n = cluster_n};
    return predict(g, c, kH100).tiling.order();
  };
  GemmArguments const wide = problem(512, 2048, 4096);  // 8 x 16 tiles
  EXPECT_EQ(order(wide, 1, 2).raster, Raster::along_m);
  EXPECT_EQ(order(wide, 1, 2).group, 8);
  EXPECT_EQ(order(wide, 1, 4).raster, Raster::along_n);  // four columns of clusters
  EXPECT_NE(order(wide, 2, 1).group, 8);                 // four rows
  GemmArguments const high = problem(2048, 512, 4096);   // 32 x 4 tiles
  EXPECT_EQ(order(high, 2, 1).raster, Raster::along_n);
  EXPECT_EQ(order(high, 2, 1).group, 8);
  EXPECT_NE(order(high, 1, 2).group, 8);
  GemmArguments const large = problem(16384, 16384, 4096);
  EXPECT_NE(order(large, 1, 2).group, 8);
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
  // Clusters that read more of B than of A, and more rows of them than GPCs: as many columns of
  // tiles across.
  GemmSm90Config const pairs = {
      .block_m = 64, .block_n = 256, .schedule = Schedule::basic, .cluster_m = 2};
  TileScheduler const columns = predict(problem(4096, 4096, 1024), pairs, kH100).tiling.order();
  EXPECT_EQ(columns.raster, Raster::along_m);
}

// CTAs side by side, which a pair of SMs has, read the same of A or of B.
TEST(GemmPlan, HasNeighboursShareWhatTheyReadMostOf) {
  GemmSm90Config const wide = {.block_m = 64, .block_n = 128, .schedule = Schedule::basic},
                       high = {.block_m = 192, .block_n = 112, .transposed = true};
  auto const raster = [](std::int64_t m, std::int64_t n, GemmSm90Config const& tile) {
    return predict(problem(m, n, 4096), tile, kH100).tiling.order().raster;
  };
  EXPECT_EQ(raster(128, 24576, wide), Raster::along_n) << "two rows of tiles";
  EXPECT_EQ(raster(8192, 256, wide), Raster::along_m) << "two columns of tiles";
  EXPECT_EQ(raster(4096, 4096, wide), Raster::along_n) << "more of B";
  EXPECT_EQ(raster(4096, 4096, high), Raster::along_m) << "more of A (D is transposed: of B)";
  EXPECT_EQ(raster(331, 32000, high), Raster::along_m) << "three columns of weights' tiles";
}

// Bound by memory, two waves of which the second has half the SMs are worse than full ones.
TEST(GemmPlan, KeepsMemoryBusyInTheLastWave) {
  GemmCostModel indifferent = model_alone();
  indifferent.sm90.uneven_loss = 0;
  auto const loss = [&](std::int64_t n) {
    GemmSm90Config const tile = {.block_m = 64, .block_n = 128, .schedule = Schedule::basic};
    GemmArguments const g = problem(64, n, 4096);
    return predict(g, tile, kH100, {}, model_alone()).cost.total -
           predict(g, tile, kH100, {}, indifferent).cost.total;
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
  slow.sm90.store_tb_per_s = 1;
  auto const epilogue = [&](GemmArguments const& g, GemmCostModel const& model) {
    return predict(g, tile, kH100, {}, model).cost.epilogue;
  };
  EXPECT_NEAR(epilogue(problem(2048, 2048, 2048), {}),
              128 * 65536 / (GemmCostModel{}.sm90.store_tb_per_s * 1e6), 1e-9);
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
  eager.sm90.fitted_gain = 0;
  EXPECT_TRUE(predict(problem(32768, 32768, 8192), tile, kH100, {}, eager).tiling.fitted());
  eager.sm90.fitted_dram_cooperative = 10;
  EXPECT_TRUE(predict(problem(4096, 4096, 512), tile, kH100, {}, eager).tiling.fitted());

  // Of the table as of the single configuration.
  GemmConstraints const large{.block_n = 256, .fitted = false};
  EXPECT_FALSE(choose_gemm(g, kH100, large).tiling.fitted());
  EXPECT_EQ(choose_gemm(g, kH100, {.block_n = 256}).tiling, fitted.tiling);
}

}  // namespace
}  // namespace tegula
