#pragma once

#include <cstdint>

#include "tegula/macros.hpp"
#include "tegula/pipeline/tile_scheduler.hpp"

namespace tegula {

/// A tile of D: its row of tiles, its first column of D, the batch it belongs to.
struct Tile {
  int m = 0;
  int column = 0;
  int batch = 0;

  constexpr bool operator==(Tile const&) const = default;
};

/// A rectangle of equal tiles, `order` their order. It begins at a row of tiles and a column of D.
struct TileRegion {
  static constexpr int nowhere = 0x7fffffff;  // the index that no tile has

  TileScheduler order;
  int m = 0;
  int column = 0;
  int first = nowhere;  ///< index of its first tile among those of the tiling; nowhere: it has none

  constexpr bool operator==(TileRegion const&) const = default;
};

/// How D is cut into tiles, and in which order they are computed: one region of equal tiles, or
/// several of which the last ones have narrower tiles, so that a persistent grid's workers get
/// equal shares.
///
/// 256 tiles of 256 columns take four rounds of 66 workers, and leave 8 of them idle in the last.
/// With a quarter of the rows cut into one tile more, 16 of 240 columns among them, 4 have a tile
/// fewer than the rest, and the longest share is 1.5 % shorter (fit_tiles below).
struct TilePartition {
  static constexpr int most_regions = 4;

  TileRegion regions[most_regions];        // those with tiles come first
  int first_narrow = TileRegion::nowhere;  ///< index of the first narrower tile
  int tiles = 1;

  constexpr TilePartition() { regions[0].first = 0; }
  /// Equal tiles.
  constexpr TilePartition(TileScheduler const& order) : tiles(order.tiles()) {
    regions[0].order = order;
    regions[0].first = 0;
  }

  constexpr bool operator==(TilePartition const&) const = default;

  /// The order of the first region's tiles.
  constexpr TileScheduler const& order() const { return regions[0].order; }
  /// Whether there are tiles of two widths.
  constexpr bool fitted() const { return first_narrow < tiles; }
  TEGULA_HOST_DEVICE constexpr bool narrow(int index) const { return index >= first_narrow; }

  /// Where a tile lies, of those that are `width` columns wide, or `narrow_width`. Precondition:
  /// index >= 0. From `tiles` on, the answer means nothing.
  TEGULA_HOST_DEVICE constexpr Tile tile(int index, int width, int narrow_width) const {
    if (narrow_width == 0) return place(regions[0], index, width);  // known to be one region
    int region = 0;
    for (int i = 1; i < most_regions; ++i) region += index >= regions[i].first ? 1 : 0;
    return place(regions[region], index, narrow(index) ? narrow_width : width);
  }

 private:
  TEGULA_HOST_DEVICE static constexpr Tile place(TileRegion const& region, int index, int width) {
    TileCoordinate const tile = region.order.tile(index - region.first);
    return {region.m + tile.m, region.column + tile.n * width, tile.batch};
  }
};

/// The tiles of one worker of a static persistent grid: worker, worker + workers, worker + 2
/// workers, ... One tile a worker is the case of as many workers as tiles.
struct PersistentTiles {
  TilePartition const& tiling;
  int index;  ///< of the present tile
  int workers;

  TEGULA_DEVICE constexpr bool done() const { return index >= tiling.tiles; }
  /// Whether no tile comes after the present one.
  TEGULA_DEVICE constexpr bool is_last() const { return index >= tiling.tiles - workers; }
  TEGULA_DEVICE constexpr void next(int steps = 1) { index += steps * workers; }
};

/// The widths of tiles that D may be cut into, in columns.
struct TileWidths {
  int wide;
  int narrow;  ///< 0: there are no narrower ones
};

/// The columns of the worker that computes the most, where each tile costs `overhead` columns
/// beside its own: of workers that take turns at `wide` tiles, then at `narrow` ones.
constexpr std::int64_t longest_share(std::int64_t wide, std::int64_t narrow, int workers,
                                     TileWidths widths, int overhead = 0) {
  auto const share = [&](std::int64_t worker) {
    std::int64_t const of_wide = (wide - worker + workers - 1) / workers;
    std::int64_t const of_all = (wide + narrow - worker + workers - 1) / workers;
    return of_wide * (widths.wide + overhead) + (of_all - of_wide) * (widths.narrow + overhead);
  };
  // Shares shrink from the first worker on, and again from the first that has a wide tile fewer.
  std::int64_t const first = share(0), fewer = share(wide % workers);
  return first > fewer ? first : fewer;
}
constexpr std::int64_t longest_share(TilePartition const& tiling, int workers, TileWidths widths,
                                     int overhead = 0) {
  int const wide = tiling.fitted() ? tiling.first_narrow : tiling.tiles;
  return longest_share(wide, tiling.tiles - wide, workers, widths, overhead);
}

namespace detail {
/// The wide and the narrow tiles of a row of tiles.
struct RowOfTiles {
  int wide, narrow;
};

/// `tiles` tiles that cover `columns` columns, as many of them narrow as can be. Precondition: wide
/// ones do.
constexpr RowOfTiles cut_row(int tiles, int columns, TileWidths widths) {
  int const spare = (tiles * widths.wide - columns) / (widths.wide - widths.narrow);
  int const narrow = spare < tiles ? spare : tiles;
  return {tiles - narrow, narrow};
}

/// The order of some of the tiles: that of `equal`, in bands no higher. (In a function, neither
/// clang 14 nor nvcc takes TileScheduler's initializers for constants: `bands` is given.)
constexpr TileScheduler order_like(TileScheduler const& equal, int tiles_m, int tiles_n) {
  int const across = equal.raster == Raster::along_n ? tiles_m : tiles_n;
  int const bands = (across + equal.group - 1) / equal.group;  // of about equal height
  int const group = (across + bands - 1) / bands;
  return {.tiles_m = tiles_m,
          .tiles_n = tiles_n,
          .batches = equal.batches,
          .raster = equal.raster,
          .group = group,
          .bands = TileScheduler::Bands(tiles_m, tiles_n, equal.raster, group)};
}

/// Rows of tiles of two kinds, the later ones `more` in number: wide tiles first, each kind
/// a region.
constexpr TilePartition make_tiling(TileScheduler const& equal, RowOfTiles row, int more,
                                    RowOfTiles later, int wide_width) {
  TilePartition tiling;
  int regions = 0;
  tiling.tiles = 0;
  auto const add = [&](int m, int tiles_m, int column, int tiles_n) {
    if (tiles_m == 0 || tiles_n == 0) return;
    TileScheduler const order = order_like(equal, tiles_m, tiles_n);
    tiling.regions[regions++] = {.order = order, .m = m, .column = column, .first = tiling.tiles};
    tiling.tiles += order.tiles();
  };
  int const earlier = equal.tiles_m - more;
  add(0, earlier, 0, row.wide);
  add(earlier, more, 0, later.wide);
  tiling.first_narrow = tiling.tiles;
  add(0, earlier, row.wide * wide_width, row.narrow);
  add(earlier, more, later.wide * wide_width, later.narrow);
  return tiling;
}
}  // namespace detail

/// D of `columns` columns cut into tiles of both widths, such that the longest share of `workers`
/// workers is the shortest: `equal` where the wide tiles alone do best, whose raster and group all
/// regions have.
///
/// Some rows of tiles are cut into t tiles, the others into t + 1, each of them with as many narrow
/// tiles as `columns` allows. Every worker computes wide tiles first, and so as many as any other,
/// or one more or less. Precondition: equal has as many wide tiles in a row as cover `columns`.
constexpr TilePartition fit_tiles(TileScheduler const& equal, int columns, TileWidths widths,
                                  int workers, int overhead = 0) {
  if (widths.narrow == 0 || equal.tiles() <= workers) return equal;
  std::int64_t shortest = longest_share(equal.tiles(), 0, workers, widths, overhead);
  int best_tiles = 0, best_more = 0;
  for (int tiles = equal.tiles_n; tiles <= equal.tiles_n + 2; ++tiles) {
    detail::RowOfTiles const row = detail::cut_row(tiles, columns, widths);
    detail::RowOfTiles const later = detail::cut_row(tiles + 1, columns, widths);
    for (int more = 0; more < equal.tiles_m; ++more) {
      std::int64_t const earlier = equal.tiles_m - more, batches = equal.batches;
      std::int64_t const share = longest_share(
          batches * (earlier * row.wide + more * later.wide),
          batches * (earlier * row.narrow + more * later.narrow), workers, widths, overhead);
      if (share < shortest) shortest = share, best_tiles = tiles, best_more = more;
    }
  }
  if (best_tiles == 0) return equal;
  return detail::make_tiling(equal, detail::cut_row(best_tiles, columns, widths), best_more,
                             detail::cut_row(best_tiles + 1, columns, widths), widths.wide);
}

}  // namespace tegula
