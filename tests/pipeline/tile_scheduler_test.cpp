// Tile schedulers and pipeline states are values and functions: held to what they promise
// by exhaustion.

#include "tegula/pipeline/tile_scheduler.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "tegula/pipeline/pipeline_state.hpp"
#include "tegula/pipeline/row_blocks.hpp"

namespace tegula {
namespace {

constexpr Raster kRasters[] = {Raster::along_m, Raster::along_n};

using Key = std::tuple<int, int, int>;
Key key(TileCoordinate const& tile) { return {tile.m, tile.n, tile.batch}; }

/// Calls f with every scheduler of up to `extent` tiles along each axis.
template <class F> void for_each_scheduler(int extent, F f) {
  for (int tiles_m = 1; tiles_m <= extent; ++tiles_m) {
    for (int tiles_n = 1; tiles_n <= extent; ++tiles_n) {
      for (int const batches : {1, 2, 3}) {
        for (Raster const raster : kRasters) {
          for (int group = 1; group <= extent + 1; ++group)
            f(TileScheduler{tiles_m, tiles_n, batches, raster, group});
        }
      }
    }
  }
}

std::string to_string(TileScheduler const& s) {
  return std::to_string(s.tiles_m) + "x" + std::to_string(s.tiles_n) + " tiles, " +
         std::to_string(s.batches) + " batches, raster along " +
         (s.raster == Raster::along_m ? "m" : "n") + ", group " + std::to_string(s.group);
}

TEST(TileScheduler, RefusesWhatHasNoTiles) {
  auto const refusal = [](auto make) -> std::string {
    try {
      make();
    } catch (layout_error const& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(refusal([] { return TileScheduler{.tiles_m = 3, .tiles_n = 0}; }),
            "TileScheduler(3, 0, 1): tiles_m, tiles_n and group are at least 1");
  EXPECT_EQ(refusal([] { return TileScheduler{.tiles_m = 3, .tiles_n = 2, .group = 0}; }),
            "TileScheduler(3, 2, 0): tiles_m, tiles_n and group are at least 1");
  EXPECT_EQ(refusal([] { return RowBlockOrder{.group = 0}; }),
            "RowBlockOrder(0): group is at least 1");
  EXPECT_EQ(refusal([] { return Divisor(0); }), "Divisor(0): a divisor is at least 1");
}

// Every small divisor with every small dividend, and at the multiples of any, and beside them, up
// to the greatest.
TEST(Divisor, DividesAsIntegersDo) {
  constexpr int greatest = std::numeric_limits<int>::max();
  for (int d = 1; d <= 300; ++d) {
    Divisor const divisor(d);
    for (int n = 0; n <= 2000; ++n) ASSERT_EQ(n / divisor, n / d) << n << " / " << d;
  }
  std::mt19937 random(1);
  for (int i = 0; i < 200000; ++i) {
    int const d = std::max(1, static_cast<int>(random() >> 1 >> (random() % 31)));
    Divisor const divisor(d);
    int const multiple = static_cast<int>(random() >> 1) / d * d;
    for (int const n : {multiple, std::max(0, multiple - 1), d - 1, d, greatest / d * d,
                        greatest / d * d - 1, greatest})
      ASSERT_EQ(n / divisor, n / d) << n << " / " << d;
  }
  static_assert(greatest / Divisor(greatest) == 1 && (greatest - 1) / Divisor(greatest) == 0);
}

TEST(TileScheduler, HasEveryTileOnce) {
  for_each_scheduler(8, [](TileScheduler const& s) {
    std::set<Key> tiles;
    for (int i = 0; i < s.tiles(); ++i) {
      TileCoordinate const tile = s.tile(i);
      ASSERT_TRUE(0 <= tile.m && tile.m < s.tiles_m && 0 <= tile.n && tile.n < s.tiles_n &&
                  0 <= tile.batch && tile.batch < s.batches)
          << to_string(s) << ": index " << i;
      tiles.insert(key(tile));
    }
    ASSERT_EQ(static_cast<int>(tiles.size()), s.tiles_m * s.tiles_n * s.batches) << to_string(s);
    // may be asked for: does not divide by zero
    for (int i = s.tiles(); i < s.tiles() + 20; ++i) s.tile(i);
    ASSERT_EQ(static_cast<int>(tiles.size()), s.tiles()) << to_string(s);
  });
}

// The order as its documentation has it, in loops: batches, bands of `group` tiles across the
// raster axis, steps along it, tiles across.
TEST(TileScheduler, WalksBandsAlongTheRasterAxis) {
  for_each_scheduler(7, [](TileScheduler const& s) {
    bool const along_n = s.raster == Raster::along_n;
    int const along_end = along_n ? s.tiles_n : s.tiles_m,
              across_end = along_n ? s.tiles_m : s.tiles_n;
    int index = 0;
    for (int batch = 0; batch < s.batches; ++batch) {
      for (int band = 0; band < across_end; band += s.group) {
        for (int along = 0; along < along_end; ++along) {
          for (int across = band; across < std::min(band + s.group, across_end); ++across) {
            TileCoordinate const expected = along_n ? TileCoordinate{across, along, batch}
                                                    : TileCoordinate{along, across, batch};
            ASSERT_EQ(s.tile(index), expected) << to_string(s) << ": index " << index;
            ++index;
          }
        }
      }
    }
  });
}

TEST(TileScheduler, IsAConstantExpression) {
  constexpr TileScheduler s{
      .tiles_m = 3, .tiles_n = 5, .batches = 2, .raster = Raster::along_n, .group = 2};
  static_assert(s.tiles() == 30);
  static_assert(s.tile(0) == TileCoordinate{0, 0, 0});
  static_assert(s.tile(1) == TileCoordinate{1, 0, 0});
  static_assert(s.tile(2) == TileCoordinate{0, 1, 0});
  static_assert(s.tile(10) == TileCoordinate{2, 0, 0});
  static_assert(s.tile(15) == TileCoordinate{0, 0, 1});
}

/// The rows of A's tiles and the columns of B's that a run of tiles reads.
int rows_and_columns(TileScheduler const& s, int first, int count) {
  std::set<std::pair<int, int>> rows, columns;
  for (int i = first; i < std::min(first + count, s.tiles()); ++i) {
    TileCoordinate const tile = s.tile(i);
    rows.insert({tile.m, tile.batch});
    columns.insert({tile.n, tile.batch});
  }
  return static_cast<int>(rows.size() + columns.size());
}

// What the order is for: tiles computed at the same time share what they read from L2. A run of
// `wave` tiles within full bands reads at most `group` tiles across for each band it touches, and
// along the raster axis ceil(wave / group) and one more at either end of each band.
TEST(TileScheduler, WavesReadFewRowsAndColumns) {
  for (int const wave : {16, 66, 132}) {
    for (Raster const raster : kRasters) {
      for (int const group : {1, 2, 4, 8, 16}) {
        TileScheduler const s{.tiles_m = 64, .tiles_n = 64, .raster = raster, .group = group};
        int const bands = (wave + 64 * group - 2) / (64 * group) + 1;
        int const bound = bands * group + std::min(64, (wave + group - 1) / group + bands);
        for (int first = 0; first < s.tiles(); first += wave)
          ASSERT_LE(rows_and_columns(s, first, wave), bound)
              << to_string(s) << ": wave from " << first;
      }
      // About as high as wide: less than half the reads of a walk along one row.
      TileScheduler const square{.tiles_m = 64, .tiles_n = 64, .raster = raster, .group = 8};
      TileScheduler const line{.tiles_m = 64, .tiles_n = 64, .raster = raster, .group = 1};
      int reads_square = 0, reads_line = 0;
      for (int first = 0; first + 132 <= square.tiles(); first += 132) {
        reads_square += rows_and_columns(square, first, 132);
        reads_line += rows_and_columns(line, first, 132);
      }
      EXPECT_LT(2 * reads_square, reads_line);
    }
  }
}

// The ring's state table: at step i, stage i mod stages, and the parity of round i / stages.
template <int Stages> void expect_ring() {
  PipelineState<Stages> state;
  for (int i = 0; i < 5 * Stages; ++i, state.next()) {
    ASSERT_EQ(state.stage, i % Stages) << Stages << " stages, step " << i;
    ASSERT_EQ(state.parity, i / Stages % 2) << Stages << " stages, step " << i;
    PipelineState<Stages> stepped = state;
    for (int steps = 0; steps <= 4 * Stages; ++steps, stepped.next()) {
      PipelineState<Stages> jumped = state;
      jumped.advance(steps);
      ASSERT_EQ(std::pair(jumped.stage, jumped.parity), std::pair(stepped.stage, stepped.parity))
          << Stages << " stages, from step " << i << " by " << steps;
    }
  }
}

TEST(PipelineState, GoesRoundTheRing) {
  expect_ring<1>();
  expect_ring<2>();
  expect_ring<3>();
  expect_ring<4>();
  expect_ring<7>();
  expect_ring<12>();
}

}  // namespace
}  // namespace tegula
