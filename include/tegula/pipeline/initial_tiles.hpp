#pragma once

#include <cstdint>

#include "tegula/macros.hpp"
#include "tegula/pipeline/tile_partition.hpp"

namespace tegula {

/// The tile that a worker of a persistent grid begins with: its index, and where it lies (a Tile),
/// in no row and batch beyond its index.
struct FirstTile {
  std::uint8_t index = 0;
  std::uint8_t m = 0;
  std::uint8_t batch = 0;
  std::int32_t column = 0;

  constexpr bool operator==(FirstTile const&) const = default;
};

/// What the workers of a persistent grid begin with: a permutation of the first tiles. They go
/// on from there as ever, as many tiles on as there are workers. A table, since all that a
/// launch fetches waits for this tile: to look it up takes a fraction of the time of computing
/// where it lies.
struct InitialTiles {
  static constexpr int most = 160;  // workers

  int workers = 0;  ///< whose tiles these are; any others begin with the tile of their own index
  FirstTile tile[most];

  /// Precondition: worker < workers.
  TEGULA_HOST_DEVICE constexpr FirstTile const& operator[](int worker) const {
    return tile[worker];
  }
  constexpr bool operator==(InitialTiles const&) const = default;
};

/// How an H100 places 66 clusters of two CTAs, one CTA an SM: the first 4 on pairs of SMs apart
/// from the rest, the next 32 on its 8 GPCs in turn, beginning with any, the next 28 on 7 of them,
/// and 2 more. Seen in every launch looked at, in three sessions on H100 SXM; the GPC that is left
/// out after the first 32 was the same one each time, so that, beginning with another, the two
/// turns are one apart before or after it.
namespace h100 {
inline constexpr int multiprocessors = 132;
inline constexpr int clusters = 66;
inline constexpr int apart = 4;
inline constexpr int gpcs = 8;
inline constexpr int full_turns = 4;
inline constexpr int later_gpcs = 7;

/// The clusters numbered GPC by GPC, as far as the order of launch tells: eight in a row share
/// one, likely.
constexpr int rank_by_gpc(int cluster) {
  constexpr int per_gpc = 2 * full_turns, later = apart + gpcs * full_turns;
  // of the GPCs, counted from where the launch began: the likeliest guess
  constexpr int left_out = gpcs / 2;
  if (cluster < apart) return left_out * per_gpc + full_turns + cluster;
  if (cluster < later) return (cluster - apart) % gpcs * per_gpc + (cluster - apart) / gpcs;
  if (cluster < later + later_gpcs * full_turns) {
    int const turn = (cluster - later) / later_gpcs, at = (cluster - later) % later_gpcs;
    return (at < left_out ? at : at + 1) * per_gpc + full_turns + turn;
  }
  return cluster;
}
}  // namespace h100

/// The order in which a grid's clusters take the first tiles.
struct FirstOrder {
  std::uint8_t tile[InitialTiles::most];  // of each cluster
};

/// The clusters of a GPC begin with tiles that lie in one row along the raster, so that they share
/// an operand and, while they walk in step, read it from L2 once: the GPC's requests for the same
/// bytes are made one. On other devices than an H100, for other grids, and for bands of more rows
/// than GPCs or of half as many (where it was seen to lose, and not tried), worker i begins with
/// tile i.
constexpr FirstOrder first_order(TilePartition const& tiling, int workers, int cluster_size,
                                 int multiprocessors) {
  FirstOrder first = {};
  for (int i = 0; i < InitialTiles::most; ++i) first.tile[i] = static_cast<std::uint8_t>(i);
  int const group = tiling.order().group;
  if (workers != h100::clusters || cluster_size != 2 || multiprocessors != h100::multiprocessors ||
      tiling.tiles < workers || group > h100::gpcs || 2 * group <= h100::gpcs)
    return first;
  // The first tiles, sorted by where they lie across the raster, then along it; without those of
  // the last column, which is not full.
  TileScheduler const& order = tiling.order();
  bool const along_n = order.raster == Raster::along_n;
  int const rows = along_n ? order.tiles_m : order.tiles_n;
  int const in_full_columns = workers - workers % (order.group < rows ? order.group : rows);
  std::int64_t key[h100::clusters] = {};
  std::uint8_t sorted[h100::clusters] = {};
  for (int i = 0; i < workers; ++i) {
    Tile const tile = tiling.tile(i, 1, 1);
    std::int64_t const across = along_n ? tile.m : tile.column,
                       along = along_n ? tile.column : tile.m;
    std::int64_t const k = (static_cast<std::int64_t>(tile.batch) << 48) + (across << 24) + along;
    int at = i;
    for (; i < in_full_columns && at > 0 && key[at - 1] > k; --at)
      key[at] = key[at - 1], sorted[at] = sorted[at - 1];
    key[at] = k, sorted[at] = static_cast<std::uint8_t>(i);
  }
  for (int worker = 0; worker < workers; ++worker)
    first.tile[worker] = sorted[h100::rank_by_gpc(worker)];
  return first;
}

/// What each of a grid's workers begins with. Precondition: the tiling is of tiles that wide,
/// in columns.
constexpr InitialTiles initial_tiles(TilePartition const& tiling, TileWidths widths, int workers,
                                     int cluster_size, int multiprocessors) {
  FirstOrder const order = first_order(tiling, workers, cluster_size, multiprocessors);
  InitialTiles first;
  first.workers = workers < InitialTiles::most ? workers : InitialTiles::most;
  for (int worker = 0; worker < first.workers; ++worker) {
    Tile const tile = tiling.tile(order.tile[worker], widths.wide, widths.narrow);
    first.tile[worker] = {.index = order.tile[worker],
                          .m = static_cast<std::uint8_t>(tile.m),
                          .batch = static_cast<std::uint8_t>(tile.batch),
                          .column = tile.column};
  }
  return first;
}

}  // namespace tegula
