#include "tegula/pipeline/first_tiles.hpp"

#include <gtest/gtest.h>

#include <set>

namespace tegula {
namespace {

constexpr int kWorkers = h100::clusters;

// The clusters in the order of launch, and the GPC of each, beginning with the given one: what rank_by_gpc is
// made for.
std::vector<int> launch(int begin) {
  std::vector<int> gpcs(h100::apart, -1);
  for (int i = 0; i < h100::gpcs * h100::full_turns; ++i) gpcs.push_back((begin + i) % h100::gpcs);
  for (int i = 0; static_cast<int>(gpcs.size()) < kWorkers; ++i)
    if ((begin + i) % h100::gpcs != 0) gpcs.push_back((begin + i) % h100::gpcs);
  return gpcs;
}

TEST(FirstTiles, EveryWorkerBeginsWithAnother) {
  for (Raster const raster : {Raster::along_m, Raster::along_n}) {
    for (int const tiles_m : {1, 3, 8, 16, 32}) {
      for (int const tiles_n : {1, 5, 12, 66, 100}) {
        for (int const group : {1, 2, 7, 8, 12, 16, 66}) {
          TileScheduler const equal{.tiles_m = tiles_m, .tiles_n = tiles_n, .raster = raster, .group = group};
          for (Tiling const& tiling :
               {Tiling(equal), fit_tiles(equal, 256 * tiles_n, {256, 240}, kWorkers)}) {
            FirstTiles const first = first_tiles(tiling, kWorkers, 2, h100::multiprocessors);
            std::set<int> seen;
            for (int worker = 0; worker < kWorkers; ++worker) seen.insert(first[worker]);
            ASSERT_EQ(static_cast<int>(seen.size()), kWorkers);
            ASSERT_EQ(*seen.rbegin(), kWorkers - 1);
            for (int worker = kWorkers; worker < 200; ++worker) ASSERT_EQ(first[worker], worker);
          }
        }
      }
    }
  }
}

TEST(FirstTiles, OtherGridsBeginInOrder) {
  Tiling const tiling = TileScheduler{.tiles_m = 16, .tiles_n = 16, .group = 8};
  EXPECT_EQ(first_tiles(tiling, 65, 2, 132), FirstTiles());
  EXPECT_EQ(first_tiles(tiling, 66, 1, 132), FirstTiles());
  EXPECT_EQ(first_tiles(tiling, 66, 2, 114), FirstTiles());
  EXPECT_EQ(first_tiles(TileScheduler{.tiles_m = 8, .tiles_n = 8}, 66, 2, 132), FirstTiles());
  EXPECT_NE(first_tiles(tiling, 66, 2, 132), FirstTiles());
}

// Wherever the launch begins, a GPC's clusters begin in fewer rows of tiles than if they began in order.
TEST(FirstTiles, GpcsShareRows) {
  Tiling const tiling = TileScheduler{.tiles_m = 16, .tiles_n = 41, .group = 8};
  FirstTiles const shared = first_tiles(tiling, kWorkers, 2, h100::multiprocessors);
  auto const rows = [&](FirstTiles const& first, int begin) {
    std::set<std::pair<int, int>> read;  // GPC, row
    std::vector<int> const gpcs = launch(begin);
    for (int worker = 0; worker < kWorkers; ++worker)
      read.insert({gpcs[static_cast<std::size_t>(worker)], tiling.tile(first[worker], 256, 0).m});
    return static_cast<int>(read.size());
  };
  for (int begin = 0; begin < h100::gpcs; ++begin)
    EXPECT_LE(rows(shared, begin), rows(FirstTiles(), begin) / 2) << "beginning with GPC " << begin;
}

TEST(FirstTiles, IsAConstantExpression) {
  constexpr Tiling tiling = TileScheduler{.tiles_m = 16, .tiles_n = 41, .group = 8};
  constexpr FirstTiles first = first_tiles(tiling, kWorkers, 2, h100::multiprocessors);
  static_assert(first[4] == 0 && first[5] == 1 && first[12] == 8 && first[65] == 65);
}

}  // namespace
}  // namespace tegula
