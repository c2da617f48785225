#include "tegula/pipeline/initial_tiles.hpp"

#include <gtest/gtest.h>

#include <set>

namespace tegula {
namespace {

constexpr int kWorkers = h100::clusters;
constexpr TileWidths kWidths = {256, 240};

// The clusters in the order of launch, and the GPC of each, beginning with the given one: what
// rank_by_gpc is made for.
std::vector<int> launch(int begin) {
  std::vector<int> gpcs(h100::apart, -1);
  for (int i = 0; i < h100::gpcs * h100::full_turns; ++i) gpcs.push_back((begin + i) % h100::gpcs);
  for (int i = 0; static_cast<int>(gpcs.size()) < kWorkers; ++i)
    if ((begin + i) % h100::gpcs != 0) gpcs.push_back((begin + i) % h100::gpcs);
  return gpcs;
}

TEST(InitialTiles, EveryWorkerBeginsWithAnother) {
  for (Raster const raster : {Raster::along_m, Raster::along_n}) {
    for (int const tiles_m : {1, 3, 8, 16, 32}) {
      for (int const tiles_n : {1, 5, 12, 66, 100}) {
        for (int const group : {1, 2, 7, 8, 12, 16, 66}) {
          TileScheduler const equal{
              .tiles_m = tiles_m, .tiles_n = tiles_n, .raster = raster, .group = group};
          for (TilePartition const& tiling :
               {TilePartition(equal), fit_tiles(equal, 256 * tiles_n, {256, 240}, kWorkers)}) {
            InitialTiles const first =
                initial_tiles(tiling, kWidths, kWorkers, 2, h100::multiprocessors);
            ASSERT_EQ(first.workers, kWorkers);
            std::set<int> seen;
            for (int worker = 0; worker < kWorkers; ++worker) {
              FirstTile const& tile = first[worker];
              seen.insert(tile.index);
              if (tile.index >= tiling.tiles) continue;
              ASSERT_EQ((Tile{tile.m, tile.column, tile.batch}), tiling.tile(tile.index, 256, 240));
            }
            ASSERT_EQ(static_cast<int>(seen.size()), kWorkers);
            ASSERT_EQ(*seen.rbegin(), kWorkers - 1);
          }
        }
      }
    }
  }
}

bool in_order(InitialTiles const& first) {
  bool result = true;
  for (int worker = 0; worker < first.workers; ++worker)
    result = result && first[worker].index == worker;
  return result;
}

TEST(InitialTiles, OtherGridsBeginInOrder) {
  auto const first = [](int tiles, int workers, int cluster_size, int multiprocessors) {
    TilePartition const tiling = TileScheduler{.tiles_m = tiles, .tiles_n = tiles, .group = 8};
    return initial_tiles(tiling, kWidths, workers, cluster_size, multiprocessors);
  };
  EXPECT_TRUE(in_order(first(16, 65, 2, 132)));
  EXPECT_TRUE(in_order(first(16, 66, 1, 132)));
  EXPECT_TRUE(in_order(first(16, 66, 2, 114)));
  EXPECT_TRUE(in_order(first(8, 66, 2, 132)));
  EXPECT_FALSE(in_order(first(16, 66, 2, 132)));
}

TEST(InitialTiles, TableEndsWhereItsTypesDo) {
  TilePartition const tiling = TileScheduler{.tiles_m = 1000, .tiles_n = 1, .batches = 3};
  InitialTiles const first = initial_tiles(tiling, {256, 0}, 1000, 1, 132);
  EXPECT_EQ(first.workers, InitialTiles::most);
  EXPECT_TRUE(in_order(first));
  for (int worker = 0; worker < first.workers; ++worker) EXPECT_EQ(first[worker].m, worker);
}

// Wherever the launch begins, a GPC's clusters begin in fewer rows of tiles than if they began
// in order.
TEST(InitialTiles, GpcsShareRows) {
  TilePartition const tiling = TileScheduler{.tiles_m = 16, .tiles_n = 41, .group = 8};
  InitialTiles const shared = initial_tiles(tiling, {256, 0}, kWorkers, 2, h100::multiprocessors);
  InitialTiles const in_order = initial_tiles(tiling, {256, 0}, kWorkers, 2, 0);
  auto const rows = [&](InitialTiles const& first, int begin) {
    std::set<std::pair<int, int>> read;  // GPC, row
    std::vector<int> const gpcs = launch(begin);
    for (int worker = 0; worker < kWorkers; ++worker)
      read.insert({gpcs[static_cast<std::size_t>(worker)], first[worker].m});
    return static_cast<int>(read.size());
  };
  for (int begin = 0; begin < h100::gpcs; ++begin)
    EXPECT_LE(rows(shared, begin), rows(in_order, begin) / 2) << "beginning with GPC " << begin;
}

TEST(InitialTiles, IsAConstantExpression) {
  constexpr TilePartition tiling = TileScheduler{.tiles_m = 16, .tiles_n = 41, .group = 8};
  constexpr InitialTiles first =
      initial_tiles(tiling, {256, 0}, kWorkers, 2, h100::multiprocessors);
  static_assert(first[4].index == 0 && first[5].index == 1 && first[12].index == 8 &&
                first[65].index == 65);
  static_assert(first[12].m == 0 && first[12].column == 256);
}

}  // namespace
}  // namespace tegula
