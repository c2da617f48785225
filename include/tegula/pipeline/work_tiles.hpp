#pragma once

#include "tegula/arch/cluster.hpp"
#include "tegula/arch/special_registers.hpp"
#include "tegula/pipeline/initial_tiles.hpp"
#include "tegula/pipeline/tile_partition.hpp"

/// Which tiles of D a CTA of a persistent grid computes.
namespace tegula {

/// A CTA's tile of D, m x n elements, or m x narrow_n of the narrower ones (0: there are none), and
/// its cluster's, which is cluster_m x cluster_n of them (rank = m + cluster_m n). `ctas` is the
/// size of the cluster: that many times as many where several CTAs share one tile, of which the
/// next has the rank of the last plus cluster_m cluster_n.
struct WorkTileSpec {
  int m = 0, n = 0;
  int narrow_n = 0;
  int cluster_m = 1, cluster_n = 1;
  int ctas = cluster_m * cluster_n;

  friend constexpr bool operator==(WorkTileSpec const&, WorkTileSpec const&) = default;
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

  /// The first tile: looked up in `initial_tiles`, computed for clusters that are not in it.
  TEGULA_DEVICE WorkTileIterator(TilePartition const& tiling, int clusters,
                                 InitialTiles const& initial_tiles)
      : tiles_{tiling, static_cast<int>(block_idx().x / S.ctas), clusters} {
    if (tiles_.index >= initial_tiles.workers) {
      find();
    } else {
      FirstTile const& first = initial_tiles[tiles_.index];
      tiles_.index = first.index;
      take({first.m, first.column, first.batch});
    }
  }

  TEGULA_DEVICE bool done() const { return tiles_.done(); }
  TEGULA_DEVICE bool narrow() const { return S.narrow_n > 0 && tiles_.tiling.narrow(tiles_.index); }
  /// Goes on by so many tiles. Where the tile lies is known after find(), which takes its time.
  TEGULA_DEVICE void next(int steps = 1) { tiles_.next(steps); }
  TEGULA_DEVICE void find() {
    take(tiles_.tiling.tile(tiles_.index, S.n * S.cluster_n, S.narrow_n * S.cluster_n));
  }

 private:
  TEGULA_DEVICE void take(Tile const& tile) {
    WorkTilePlace const place = place_of<S>(tile, narrow());
    m = place.m;
    n = place.n;
    batch = place.batch;
  }

  PersistentTiles tiles_;
};

}  // namespace tegula
