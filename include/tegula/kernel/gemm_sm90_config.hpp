#pragma once

#include <cstdint>

#include "tegula/arch/tensor_map.hpp"
#include "tegula/atom/mma_spec.hpp"
#include "tegula/kernel/epilogue_sm90_config.hpp"
#include "tegula/kernel/gemm_cluster_spec.hpp"
#include "tegula/layout/refuse.hpp"
#include "tegula/numeric/dtype.hpp"
#include "tegula/pipeline/initial_tiles.hpp"
#include "tegula/pipeline/lockstep_barrier.hpp"
#include "tegula/pipeline/tile_partition.hpp"
#include "tegula/pipeline/work_tiles.hpp"
#include "tegula/pipeline/workspace_reduction.hpp"
#include "tegula/tensor/tma_box.hpp"

namespace tegula {

/// How the consumer warpgroups of a CTA share the work. One producer warp feeds them in each.
enum class Schedule : std::uint8_t {
  basic,        ///< one consumer warpgroup computes a tile
  cooperative,  ///< two, or of 192 rows three, compute as many rows each of one tile
  pingpong,     ///< two compute a tile each, one's epilogue under the other's main loop
};

/// GemmSm90Config::store_buffers: D leaves through a stage of the ring.
inline constexpr int kLastStage = -1;

/// One configuration of the Hopper GEMM kernel: everything inside a CTA's tile.
///
/// A tile is block_m x block_n elements of D: a CTA's (basic, cooperative) or a consumer's
/// (pingpong). K is walked 128 bytes at a time. The CTAs of a cluster of cluster_m x cluster_n
/// (rank = m + cluster_m n) compute neighbouring tiles and fetch what they share once, by
/// multicast. With split_k > 1 the cluster has split_k times as many, of which split_k compute a
/// tile together, each a share of K (rank = m + cluster_m n + cluster_m cluster_n share). With
/// in_parts any number of clusters may compute a tile together, each a part of K, whose sums meet
/// in a workspace: as many as the schedule says. With narrow_n > 0 the kernel has a second main
/// loop, for tiles of that many columns, so that D may be cut into both
/// (pipeline/tile_partition.hpp).
struct GemmSm90Config {
  DType a = DType::bf16;
  DType b = DType::bf16;
  DType out = DType::bf16;
  Major a_major = Major::k;
  Major b_major = Major::k;
  int block_m = 128;
  int block_n = 256;
  Schedule schedule = Schedule::cooperative;
  int cluster_m = 1;
  int cluster_n = 1;
  int split_k = 1;
  bool in_parts = false;
  int narrow_n = 0;  ///< columns of the narrower tiles, where D is cut into both; 0: there are none
  /// of each consumer warp, for D on its way out; 0, only transposed: it leaves from registers;
  /// kLastStage: through A's part of the stage that the tile read last, which goes back to the
  /// producer after that
  int store_buffers = 2;
  int min_ctas_per_sm = 1;
  bool activates = false;   ///< whether D is activated: by which function is known only at run time
  bool transposed = false;  ///< whether D is contiguous along m, not along n; no C and no bias then

  constexpr bool operator==(GemmSm90Config const&) const = default;
};

constexpr int consumers(GemmSm90Config const& c) {
  if (c.schedule == Schedule::cooperative) return c.block_m % 192 == 0 ? 3 : 2;
  return c.schedule == Schedule::basic ? 1 : 2;
}
/// Elements of K in a stage: 128 bytes of a row, the span of the widest swizzle.
constexpr int block_k(GemmSm90Config const& c) { return 1024 / bits(c.a); }
constexpr GemmClusterSpec cluster_of(GemmSm90Config const& c) {
  return {.m = c.cluster_m, .n = c.cluster_n, .shares = c.split_k};
}
/// CTAs of a cluster.
constexpr int cluster_size(GemmSm90Config const& c) { return cluster_of(c).size(); }
/// Rows of D that one consumer computes.
constexpr int consumer_m(GemmSm90Config const& c) {
  return c.schedule == Schedule::cooperative ? c.block_m / consumers(c) : c.block_m;
}

/// The tiles of A and B in shared memory, (mn, block_k, stages), ...
constexpr OperandTile a_tile(GemmSm90Config const& c, int stages = 1) {
  return {bits(c.a), c.block_m, block_k(c), c.a_major == Major::k ? 1 : 0, stages};
}
constexpr OperandTile b_tile(GemmSm90Config const& c, int stages = 1) {
  return {bits(c.b), c.block_n, block_k(c), c.b_major == Major::k ? 1 : 0, stages};
}
/// ... and how they come there: CTAs of a cluster that need the same tile share its boxes.
constexpr TmaBoxes a_fetch(GemmSm90Config const& c) { return tma_boxes(a_tile(c), c.cluster_n); }
constexpr TmaBoxes b_fetch(GemmSm90Config const& c) { return tma_boxes(b_tile(c), c.cluster_m); }

/// Columns of D that a consumer's epilogue computes at once: with split_k the CTA's share of the
/// tile, in parts those of a piece, which its warps share out among the parts.
constexpr int epilogue_n(GemmSm90Config const& c) {
  if (c.in_parts) return c.block_n % 32 == 0 ? 32 : c.block_n % 16 == 0 ? 16 : 8;
  return c.block_n / c.split_k;
}
constexpr int stages(GemmSm90Config const& c);
constexpr bool lends_last_stage(GemmSm90Config const& c) { return c.store_buffers == kLastStage; }
constexpr EpilogueSm90Spec epilogue(GemmSm90Config const& c) {
  EpilogueSm90Spec s = {.out = c.out,
                        .n = epilogue_n(c),
                        .narrow_n = c.narrow_n,
                        .warps = 4 * consumers(c),
                        .rows = c.transposed ? 64 : 16,
                        .first_thread = kWarpgroupSize,  // after the producer's
                        .buffers = c.store_buffers,
                        .activates = c.activates,
                        .transposed = c.transposed};
  if (lends_last_stage(c)) {
    s.ring = stages(c);
    s.stage_pieces = 128 * c.block_m / piece_bytes(s);
    s.buffers = s.stage_pieces / pieces_at_once(s);
  }
  return s;
}

/// The tiles of D that a CTA's cluster takes: a CTA's, and its cluster's.
constexpr WorkTileSpec work_tiles(GemmSm90Config const& c) {
  return {.m = c.block_m,
          .n = c.block_n,
          .narrow_n = c.narrow_n,
          .cluster_m = c.cluster_m,
          .cluster_n = c.cluster_n,
          .ctas = cluster_size(c),
          .in_parts = c.in_parts};
}
/// The columns of a cluster's tiles.
constexpr TileWidths tile_widths(GemmSm90Config const& c) {
  return {c.block_n * c.cluster_n, c.narrow_n * c.cluster_n};
}

/// Warps that compute a CTA's tile, each of which adds up its sums of several parts by itself.
constexpr int warps_of_tile(GemmSm90Config const& c) {
  return c.schedule == Schedule::pingpong ? 4 : 4 * consumers(c);
}
/// Bytes of the sums of one part of a cluster's tile.
constexpr std::int64_t part_bytes(GemmSm90Config const& c) {
  return std::int64_t{4} * cluster_size(c) * c.block_m * c.block_n;
}

/// Shared memory of a CTA besides the stages: D on its way out; barriers, with room for alignment.
constexpr int epilogue_bytes(GemmSm90Config const& c) {
  if (c.store_buffers <= 0) return 1024;
  OperandTile const d = store_tile(epilogue(c));
  return d.stages * d.mn * d.k * d.bits / 8 + 1024;
}
constexpr int stage_bytes(GemmSm90Config const& c) {
  return (c.block_m + c.block_n) * 128;  // bytes of K
}
/// As many stages as an H100's shared memory holds, 227 KB a CTA (228 KB an SM, less 1 KB for
/// each CTA).
constexpr int stages(GemmSm90Config const& c) {
  int const budget = (228 / c.min_ctas_per_sm - 1) * 1024;
  int const most = (budget - epilogue_bytes(c)) / stage_bytes(c);
  return most < 12 ? most : 12;
}

/// Whether D can leave through the last stage: nothing else comes to lie there, no other consumer
/// waits for it, and each warpgroup has room for a piece where only it has read, in its rows of A.
constexpr bool can_lend_last_stage(GemmSm90Config c) {
  c.store_buffers = 1;
  EpilogueSm90Spec const s = epilogue(c);
  int const own = 128 * c.block_m / consumers(c);
  return c.split_k == 1 && !c.in_parts && c.schedule != Schedule::pingpong &&
         c.a_major == Major::k && own % piece_bytes(s) == 0 &&
         own >= pieces_at_once(s) / consumers(c) * piece_bytes(s);
}
/// The same tile with D on its way out where it leaves room for more stages, if its consumers
/// share the tile: in two buffers, in one, or, of those that have four stages else, or three
/// consumers, in the last stage. For others more stages took longer, measured (decision 183): there
/// D's way out counts for more.
constexpr GemmSm90Config with_more_stages(GemmSm90Config c) {
  if (c.schedule != Schedule::cooperative || c.store_buffers == 0) return c;
  GemmSm90Config other = c;
  other.store_buffers = 1;
  if (stages(other) > stages(c)) c = other;
  other.store_buffers = kLastStage;
  if ((stages(c) <= 4 || consumers(c) == 3) && can_lend_last_stage(c) && stages(other) > stages(c))
    c = other;
  return c;
}

/// A and B. The tensor maps describe A as (k, m, batch) or (m, k, batch) with the boxes of
/// a_fetch(config), B likewise; the boxes of a tile at the end of A, or B, may have fewer rows
/// (kernel/gemm_unloaded_rows.hpp).
struct GemmSm90Problem {
  TensorMap a;
  TensorMap b;
  // What the first loads wait for, these and the schedule's first, lie close together: the cache of
  // constants brings lines of 256 bytes.
  int m = 0;
  int n = 0;
  int k = 0;
  /// last rows of A's last tile that its boxes do not bring, as many fewer in each peer's, or 0
  int unloaded_a = 0;
  int unloaded_b = 0;      ///< likewise of B
  bool a_batched = false;  ///< false: all batches share A
  bool b_batched = false;
  TensorMap a_last;  ///< where unloaded_a is not 0: by boxes of the last tile's rows
  TensorMap b_last;
};

/// Who computes which tile of D, and when.
struct GemmSm90Schedule {
  int clusters = 1;            ///< in the grid; each walks the tiling's tiles, clusters apart
  InitialTiles initial_tiles;  ///< where the tiling has them; may be empty
  TilePartition tiling;        ///< into clusters' tiles, each part of K counted as one
  int lockstep_steps = 0;      ///< along K, between meetings of the clusters
  LockstepCounters* lockstep = nullptr;  ///< null: they do not meet; not with split_k or parts
};

/// The parts of K that each tile is computed in: one, of a configuration that is not in_parts.
struct GemmSm90Parts {
  TileParts tile;
  PartialSums partial;  ///< where several meet
};

/// What the kernel is launched with: D = activation(alpha scale_a scale_b A B + beta C + bias), for
/// each batch.
struct GemmSm90Params {
  GemmSm90Problem problem;
  GemmSm90Schedule schedule;
  EpilogueSm90Params epilogue;
  GemmSm90Parts parts;
};

}  // namespace tegula
