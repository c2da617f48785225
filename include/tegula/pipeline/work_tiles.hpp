#pragma once

#include "tegula/arch/cluster.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/pipeline/divisor.hpp"
#include "tegula/pipeline/initial_tiles.hpp"
#include "tegula/pipeline/tile_partition.hpp"

/// Which tiles of D a CTA of a persistent grid computes.
namespace tegula {

/// A CTA's tile of D, m x n elements, or m x narrow_n of the narrower ones (0: there are none), and
/// its cluster's, which is cluster_m x cluster_n of them (rank = m + cluster_m n). `ctas` is the
/// size of the cluster: that many times as many where several CTAs share one tile, of which the
/// next has the rank of the last plus cluster_m cluster_n. With `in_parts` several clusters may
/// share one tile, each a part of it: those of a tile follow each other as its batches would.
struct WorkTileSpec {
  int m = 0, n = 0;
  int narrow_n = 0;
  int cluster_m = 1, cluster_n = 1;
  int ctas = cluster_m * cluster_n;
  bool in_parts = false;

  friend constexpr bool operator==(WorkTileSpec const&, WorkTileSpec const&) = default;
};

/// The parts that each tile of a tiling is computed in: a batch of D is as many of the tiling.
struct TileParts {
  int count = 1;
  Divisor by_count{1};

  constexpr TileParts() = default;
  /// Precondition: count >= 1.
  constexpr explicit TileParts(int count) : count(count), by_count(count) {}
  constexpr bool operator==(TileParts const&) const = default;
};

/// Where a CTA's tile of D begins, and its batch.
struct WorkTilePlace {
  int m, n, batch;
};

/// The CTA's of its cluster's tiles.
template <WorkTileSpec S> TEGULA_DEVICE WorkTilePlace place_of(Tile const& tile, bool narrow) {
  constexpr int tiles = S.cluster_m * S.cluster_n;
  int const cta = tiles > 1 ? cluster_cta_rank() : 0, rank = tiles < S.ctas ? cta % tiles : cta;
  int const rank_m = S.cluster_n > 1 ? rank % S.cluster_m : rank;
  int const rank_n = S.cluster_n > 1 ? rank / S.cluster_m : 0;
  return {(tile.m * S.cluster_m + rank_m) * S.m, tile.column + rank_n * (narrow ? S.narrow_n : S.n),
          tile.batch};
}

/// The tiles of one role of a CTA, in the order of the tiling: its cluster takes every
/// `clusters`-th, of which the CTA computes the one of its rank. Each role of the CTA walks the
/// same list with an iterator of its own.
template <WorkTileSpec S> class WorkTileIterator {
 public:
  int m, n, batch;  ///< the first element of the present tile, and its batch
  int part = 0;     ///< of the tile that is computed

  /// The first tile: looked up in `initial_tiles`, computed for clusters that are not in it.
  /// `parts` counts with S.in_parts alone.
  TEGULA_DEVICE WorkTileIterator(TilePartition const& tiling, int clusters,
                                 InitialTiles const& initial_tiles, TileParts parts = {})
      : tiles_{tiling, static_cast<int>(block_idx().x / S.ctas), clusters}, parts_(parts) {
    if (tiles_.index >= initial_tiles.workers) {
      find();
    } else {
      FirstTile const& first = initial_tiles[tiles_.index];
      tiles_.index = first.index;
      take({first.m, first.column, first.batch});
    }
  }

  TEGULA_DEVICE bool done() const { return tiles_.done(); }
  /// Whether no tile comes after the present one.
  TEGULA_DEVICE bool is_last() const { return tiles_.is_last(); }
  TEGULA_DEVICE bool narrow() const { return S.narrow_n > 0 && tiles_.tiling.narrow(tiles_.index); }
  /// Goes on by so many tiles. Where the tile lies is known after find(), which takes its time.
  TEGULA_DEVICE void next(int steps = 1) { tiles_.next(steps); }
  /// The index of the present tile's part 0 among the tiles of all batches, and of how many more
  /// each next part is. Precondition: S.in_parts.
  TEGULA_DEVICE int first_part() const { return tiles_.index - part * tiles_of_part(); }
  TEGULA_DEVICE int tiles_of_part() const {
    TileScheduler const& order = tiles_.tiling.regions[0].order;
    return order.tiles_m * order.tiles_n;
  }
  TEGULA_DEVICE void find() {
    take(tiles_.tiling.tile(tiles_.index, S.n * S.cluster_n, S.narrow_n * S.cluster_n));
  }

 private:
  TEGULA_DEVICE void take(Tile const& tile) {
    WorkTilePlace const place = place_of<S>(tile, narrow());
    m = place.m;
    n = place.n;
    batch = place.batch;
    if constexpr (S.in_parts) {
      batch = place.batch / parts_.by_count;
      part = place.batch - batch * parts_.count;
    }
  }

  PersistentTiles tiles_;
  TileParts parts_;
};

}  // namespace tegula
