// Partitions of D and the workers that walk them: held to what they promise by exhaustion.

#include "tegula/pipeline/tile_partition.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace tegula {
namespace {

constexpr Raster kRasters[] = {Raster::along_m, Raster::along_n};
/// Of the kernels' tiles, of clusters of two along n, and small ones, down to half as wide:
/// narrower ones may come to lie beyond the edge.
constexpr TileWidths kWidths[] = {{256, 240}, {192, 176}, {176, 160}, {160, 144}, {512, 480},
                                  {8, 4},     {8, 7},     {9, 5},     {2, 1}};

using Key = std::tuple<int, int, int>;
Key key(Tile const& tile) { return {tile.m, tile.column, tile.batch}; }

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Equal tiles, and what they are to be fitted to.
struct Problem {
  TileScheduler equal;
  int columns;
  TileWidths widths;
  int workers;
  int overhead = 0;

  TilePartition fitted() const { return fit_tiles(equal, columns, widths, workers, overhead); }
};

std::string to_string(Problem const& p) {
  return std::to_string(p.equal.tiles_m) + " rows of tiles, " + std::to_string(p.columns) +
         " columns, " + std::to_string(p.equal.batches) + " batches, tiles of " +
         std::to_string(p.widths.wide) + " and " + std::to_string(p.widths.narrow) + " columns, " +
         std::to_string(p.workers) + " workers, overhead " + std::to_string(p.overhead) +
         ", raster along " + (p.equal.raster == Raster::along_m ? "m" : "n") + ", group " +
         std::to_string(p.equal.group);
}

/// Calls f with problems of every pair of widths: rows that end with a tile, in the middle of one,
/// and beside an edge; fewer workers than tiles, as many, and more.
template <class F> void for_each_problem(F f) {
  for (TileWidths const& widths : kWidths) {
    int const wide = widths.wide, narrow = widths.narrow;
    std::set<int> columns = {1, narrow - 1, narrow, narrow + 1, wide - 1, wide + 1};
    for (int const tiles : {1, 2, 3, 4, 7})
      for (int const edge :
           {tiles * wide, tiles * narrow, wide + tiles * narrow, tiles * wide + wide / 2})
        columns.insert({edge - 1, edge, edge + 1});
    columns.erase(0);
    for (int const n : columns) {
      for (int const rows : {1, 2, 3, 4, 5, 8, 13}) {
        for (int const batches : {1, 2, 3}) {
          for (int const workers : {1, 2, 3, 5, 7, 16, 66}) {
            // A raster and a group for each, so that all come with all.
            int const turn = n + rows + batches + workers;
            Raster const raster = kRasters[turn / 4 % 2];
            int const group = 1 + turn % 4;
            f(Problem{{rows, static_cast<int>(ceil_div(n, wide)), batches, raster, group},
                      n,
                      widths,
                      workers,
                      turn % 3 == 0 ? wide / 8 : 0});
          }
        }
      }
    }
  }
}

/// The longest share of workers that take turns at tiles of these widths, in columns.
std::int64_t longest_share_of(std::vector<int> const& tiles, int workers, int overhead) {
  std::vector<std::int64_t> shares(static_cast<std::size_t>(workers));
  for (std::size_t i = 0; i < tiles.size(); ++i) shares[i % shares.size()] += tiles[i] + overhead;
  return *std::max_element(shares.begin(), shares.end());
}
std::int64_t longest_share_of(int wide, int narrow, Problem const& p) {
  std::vector<int> tiles(static_cast<std::size_t>(wide), p.widths.wide);
  tiles.insert(tiles.end(), static_cast<std::size_t>(narrow), p.widths.narrow);
  return longest_share_of(tiles, p.workers, p.overhead);
}

/// Holds a tiling to this: every column of every row of tiles belongs to one tile; none lies beyond
/// the edge.
void expect_covers(TilePartition const& tiling, Problem const& p) {
  auto const rows = static_cast<std::size_t>(p.equal.tiles_m),
             columns = static_cast<std::size_t>(p.columns);
  std::vector<std::uint8_t> covered(rows * columns * static_cast<std::size_t>(p.equal.batches));
  for (int i = 0; i < tiling.tiles; ++i) {
    Tile const tile = tiling.tile(i, p.widths.wide, p.widths.narrow);
    ASSERT_TRUE(0 <= tile.m && tile.m < p.equal.tiles_m && 0 <= tile.column &&
                tile.column < p.columns && 0 <= tile.batch && tile.batch < p.equal.batches)
        << to_string(p) << ": index " << i;
    int const end =
        std::min(tile.column + (tiling.narrow(i) ? p.widths.narrow : p.widths.wide), p.columns);
    auto const row =
        (static_cast<std::size_t>(tile.batch) * rows + static_cast<std::size_t>(tile.m)) * columns;
    for (int column = tile.column; column < end; ++column)
      ++covered[row + static_cast<std::size_t>(column)];
  }
  for (std::size_t i = 0; i < covered.size(); ++i) {
    ASSERT_EQ(covered[i], 1) << to_string(p) << ": batch " << i / columns / rows << ", row "
                             << i / columns % rows << ", column " << i % columns;
  }
}

TEST(TilePartition, CoversEveryElementOnce) {
  int fitted = 0;
  for_each_problem([&](Problem const& p) {
    TilePartition const tiling = p.fitted();
    fitted += tiling.fitted() ? 1 : 0;
    expect_covers(tiling, p);
    if (tiling.fitted()) expect_covers(p.equal, p);
  });
  EXPECT_GT(fitted, 1000);
}

// Regions hold the tiles of ascending indices, those with wide tiles first; beyond the last
// nothing lies.
TEST(TilePartition, HasRegionsInTheOrderOfTheirTiles) {
  std::set<int> numbers;
  for_each_problem([&](Problem const& p) {
    TilePartition const tiling = p.fitted();
    int regions = 0, tiles = 0;
    for (TileRegion const& region : tiling.regions) {
      if (region.first == TileRegion::nowhere) continue;
      ASSERT_EQ(&region - tiling.regions, regions)
          << to_string(p) << ": regions with tiles come first";
      ASSERT_EQ(region.first, tiles) << to_string(p);
      // A region has tiles of one width.
      ASSERT_TRUE(tiling.narrow(region.first) ||
                  region.first + region.order.tiles() <= tiling.first_narrow)
          << to_string(p);
      ASSERT_EQ(region.order.raster, p.equal.raster) << to_string(p);
      ASSERT_LE(region.order.group, p.equal.group) << to_string(p);
      tiles += region.order.tiles();
      ++regions;
    }
    ASSERT_EQ(tiles, tiling.tiles) << to_string(p);
    ASSERT_EQ(tiling.order(), tiling.regions[0].order);
    ASSERT_EQ(tiling.fitted(), tiling.narrow(tiling.tiles - 1)) << to_string(p);
    numbers.insert(regions);
  });
  EXPECT_EQ(numbers, (std::set<int>{1, 2, 3, 4})) << "every number of regions has come";
}

TEST(TilePartition, MayBeAskedForTilesBeyondTheLast) {
  for_each_problem([](Problem const& p) {
    TilePartition const tiling = p.fitted();
    for (int const more : {0, 1, p.workers, 2 * p.workers})  // does not divide by zero
      tiling.tile(tiling.tiles + more, p.widths.wide, p.widths.narrow);
    ASSERT_GT(tiling.tiles, 0);
  });
}

// Where no narrower tile exists, a width of 0 says so: the scheduler's tiles.
TEST(TilePartition, OfEqualTilesHasTheSchedulersOrder) {
  for (Raster const raster : kRasters) {
    TileScheduler const s{.tiles_m = 5, .tiles_n = 7, .batches = 2, .raster = raster, .group = 3};
    TilePartition const tiling = s;
    EXPECT_EQ(tiling.tiles, 70);
    EXPECT_FALSE(tiling.fitted());
    for (int i = 0; i < tiling.tiles; ++i) {
      TileCoordinate const of_s = s.tile(i);
      for (int const narrow_width : {0, 48}) {
        ASSERT_EQ(tiling.tile(i, 64, narrow_width), (Tile{of_s.m, 64 * of_s.n, of_s.batch})) << i;
        ASSERT_FALSE(tiling.narrow(i));
      }
    }
  }
}

TEST(LongestShare, IsThatOfTheWorkerWhoComputesTheMost) {
  for (TileWidths const& widths : kWidths)
    for (int wide = 0; wide <= 24; ++wide)
      for (int narrow = 0; narrow <= 24; ++narrow)
        for (int workers = 1; workers <= 12; ++workers)
          for (int const overhead : {0, 1, 37}) {
            Problem const p{{}, 0, widths, workers, overhead};
            ASSERT_EQ(longest_share(wide, narrow, workers, widths, overhead),
                      longest_share_of(wide, narrow, p))
                << wide << " wide and " << narrow << " narrow tiles: " << to_string(p);
          }
}

TEST(LongestShare, OfAPartitionCountsItsTiles) {
  for_each_problem([](Problem const& p) {
    TilePartition const tiling = p.fitted();
    std::vector<int> tiles;
    for (int i = 0; i < tiling.tiles; ++i)
      tiles.push_back(tiling.narrow(i) ? p.widths.narrow : p.widths.wide);
    ASSERT_EQ(longest_share(tiling, p.workers, p.widths, p.overhead),
              longest_share_of(tiles, p.workers, p.overhead))
        << to_string(p);
  });
}

/// A row of `tiles` tiles with as many narrow ones as can be such that it covers the columns: tried
/// one by one. Negative: not even wide ones cover them.
int most_narrow(int tiles, Problem const& p) {
  int most = -1;
  for (int narrow = 0; narrow <= tiles; ++narrow)
    if ((tiles - narrow) * p.widths.wide + narrow * p.widths.narrow >= p.columns) most = narrow;
  return most;
}

/// The shortest longest share of all tilings of which some rows have t tiles and the others t + 1,
/// each as many narrow ones as can be: for t up to `more_tiles` more than the wide tiles of a row.
std::int64_t shortest_share(Problem const& p, int more_tiles) {
  std::int64_t shortest = longest_share_of(p.equal.tiles(), 0, p);
  for (int t = p.equal.tiles_n; t <= p.equal.tiles_n + more_tiles; ++t) {
    int const narrow = most_narrow(t, p), later_narrow = most_narrow(t + 1, p);
    for (int later = 0; later < p.equal.tiles_m; ++later) {
      int const earlier = p.equal.tiles_m - later;
      int const of_narrow = p.equal.batches * (earlier * narrow + later * later_narrow);
      int const of_wide = p.equal.batches * (earlier * t + later * (t + 1)) - of_narrow;
      shortest = std::min(shortest, longest_share_of(of_wide, of_narrow, p));
    }
  }
  return shortest;
}

TEST(FitTiles, MakesTheLongestShareTheShortest) {
  int shorter = 0;
  for_each_problem([&](Problem const& p) {
    TilePartition const tiling = p.fitted();
    std::int64_t const share = longest_share(tiling, p.workers, p.widths, p.overhead);
    std::int64_t const of_equal = longest_share_of(p.equal.tiles(), 0, p);
    ASSERT_LE(share, of_equal) << to_string(p);
    ASSERT_EQ(tiling.fitted(), share < of_equal)
        << to_string(p) << ": narrower tiles, where they gain";
    if (!tiling.fitted()) {
      ASSERT_EQ(tiling, TilePartition(p.equal)) << to_string(p);
    }
    if (p.equal.tiles() <= p.workers) {
      ASSERT_EQ(tiling, TilePartition(p.equal)) << to_string(p) << ": a tile a worker";
    } else {
      ASSERT_EQ(share, shortest_share(p, 2)) << to_string(p);
    }
    shorter += share < of_equal ? 1 : 0;
  });
  EXPECT_GT(shorter, 1000);
}

TEST(FitTiles, KeepsEqualTilesWhereThereAreNoNarrower) {
  for (int const workers : {1, 3, 66}) {
    TileScheduler const equal{.tiles_m = 16, .tiles_n = 16};
    EXPECT_EQ(fit_tiles(equal, 4096, {256, 0}, workers), TilePartition(equal));
  }
}

// 4096 x 4096 in clusters' tiles of 256 x 256, on 66 clusters: a quarter of the rows has 17 tiles,
// of which 16 are narrow.
TEST(FitTiles, IsAConstantExpression) {
  constexpr TileScheduler equal{
      .tiles_m = 16, .tiles_n = 16, .raster = Raster::along_n, .group = 8};
  constexpr TileWidths widths{256, 240};
  constexpr TilePartition fitted = fit_tiles(equal, 4096, widths, 66);
  static_assert(fitted.fitted());
  static_assert(fitted.tiles == 260);
  static_assert(fitted.tiles - fitted.first_narrow == 64);
  static_assert(longest_share(equal, 66, widths) == 4 * 256);
  static_assert(longest_share(fitted, 66, widths) == 3 * 256 + 240);
  static_assert(fitted.tile(0, 256, 240) == Tile{0, 0, 0});
  static_assert(fitted.regions[0].order.tiles_m == 12 && fitted.regions[0].order.tiles_n == 16);
  static_assert(fitted.regions[1].m == 12 && fitted.regions[1].order.tiles_n == 1);
  static_assert(fitted.tile(fitted.first_narrow, 256, 240) == Tile{12, 256, 0});
  static_assert(fitted.tile(259, 256, 240) == Tile{15, 256 + 15 * 240, 0});
  static_assert(!fit_tiles(equal, 4096, widths, 64).fitted(), "four full waves");
  static_assert(!fit_tiles(equal, 4096, widths, 256).fitted(), "a tile a worker");
  static_assert(!TilePartition{}.fitted() && TilePartition{}.tiles == 1);
}

TEST(PersistentTiles, WorkersShareAllTiles) {
  for_each_problem([](Problem const& p) {
    TilePartition const tiling = p.fitted();
    std::multiset<Key> tiles;
    for (int worker = 0; worker < p.workers; ++worker) {
      int count = 0;
      bool narrow = false;
      for (PersistentTiles walk{tiling, worker, p.workers}; !walk.done(); walk.next()) {
        tiles.insert(key(tiling.tile(walk.index, p.widths.wide, p.widths.narrow)));
        ASSERT_TRUE(!narrow || tiling.narrow(walk.index))
            << to_string(p) << ": wide tiles come first";
        narrow = tiling.narrow(walk.index);
        ++count;
      }
      // No worker has two tiles more than another.
      ASSERT_TRUE(count == tiling.tiles / p.workers || count == tiling.tiles / p.workers + 1)
          << to_string(p);
    }
    ASSERT_EQ(static_cast<int>(tiles.size()), tiling.tiles) << to_string(p);
    ASSERT_EQ(std::set<Key>(tiles.begin(), tiles.end()).size(), tiles.size()) << to_string(p);
  });
}

// The consumers of a ping-pong CTA take every other tile of their worker; one with an odd number of
// tiles leaves the last to the first of them.
TEST(PersistentTiles, TwoConsumersTakeTurns) {
  for (int const tiles : {1, 2, 3, 7, 8, 9, 20}) {
    for (int workers = 1; workers <= 5; ++workers) {
      TilePartition const tiling = TileScheduler{.tiles_m = tiles, .tiles_n = 1};
      for (int worker = 0; worker < workers; ++worker) {
        std::vector<int> all, in_turns;
        for (PersistentTiles walk{tiling, worker, workers}; !walk.done(); walk.next())
          all.push_back(walk.index);
        PersistentTiles walks[2] = {{tiling, worker, workers}, {tiling, worker, workers}};
        walks[1].next();
        for (int turn = 0; !walks[turn % 2].done(); ++turn) {
          in_turns.push_back(walks[turn % 2].index);
          walks[turn % 2].next(2);
        }
        EXPECT_EQ(in_turns, all) << tiles << " tiles, worker " << worker << " of " << workers;
      }
    }
  }
}

}  // namespace
}  // namespace tegula
