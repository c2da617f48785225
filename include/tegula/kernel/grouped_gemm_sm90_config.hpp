#pragma once

#include <cstdint>

#include "tegula/arch/tensor_map.hpp"
#include "tegula/atom/mma_spec.hpp"
#include "tegula/kernel/epilogue_sm90_config.hpp"
#include "tegula/numeric/dtype.hpp"
#include "tegula/pipeline/group_tiles.hpp"
#include "tegula/tensor/tma_box.hpp"

namespace tegula {

/// Stages that are as good as more: of narrow tiles what one SM has under way at a time.
inline constexpr int kMostStages = 16;

/// Elements of K, or rows of B, that share a scale.
inline constexpr int kScaleBlock = 128;

/// Which elements of A and B share a scale (docs/low_precision.md).
enum class Scales : std::uint8_t {
  none,
  rows_by_blocks,  ///< "1x128,128x128": of A a row's 128 of K, of B 128 rows' 128 of K
  rows_by_rows,    ///< "1x128,1x128": of both a row's 128 of K
};

/// One configuration of the grouped GEMM: D = A B^T + C, A and B K-major, of which each group has a
/// part. Each of one (block_m 64) or two consumer warpgroups computes block_m / consumers rows of a
/// tile, 64 at a time; K is walked 128 bytes at a time. The CTAs of a cluster compute tiles of one
/// group beside each other: along N, of which all read the same rows of A, or along M, of which all
/// read the same of B. That comes to them by multicast.
///
/// With split_k > 1 the CTAs of a cluster compute one tile instead: each has a share of the steps
/// of K and stages of its own, and finishes a share of the columns.
struct GroupedGemmSm90Config {
  DType a = DType::e4m3;
  DType b = DType::e4m3;
  DType out = DType::bf16;
  Scales scales = Scales::rows_by_blocks;
  int block_m = 128;
  int block_n = 128;
  int cluster_m = 1;
  int cluster_n = 1;
  int split_k = 1;
  int min_ctas_per_sm = 1;  ///< 2: one's products lie under the other's promotion

  constexpr bool operator==(GroupedGemmSm90Config const&) const = default;
};

/// Whether there may be groups of k: not where 128 rows of B share a scale, which are weights; and
/// not in a cluster, whose CTAs load to a stage that another one has cleared behind a group's end.
constexpr bool computes_groups_of_k(GroupedGemmSm90Config const& c) {
  return c.scales != Scales::rows_by_blocks && c.cluster_m == 1 && c.cluster_n == 1;
}

constexpr int consumers(GroupedGemmSm90Config const& c) { return c.block_m == kWgmmaM ? 1 : 2; }
/// Rows that the consumers compute at one time, and how often they do for a tile.
constexpr int wave_m(GroupedGemmSm90Config const& c) { return kWgmmaM * consumers(c); }
constexpr int waves(GroupedGemmSm90Config const& c) { return c.block_m / wave_m(c); }
/// Partial sums of a wave that a thread holds beside its sums: two where one consumer has the
/// tensor core for itself and registers for them, so that this has the next step's products while
/// it promotes. Of two consumers each promotes under the other's products. (With a second set it
/// would wait for the next stage before it gives this one back.)
constexpr int partials(GroupedGemmSm90Config const& c) {
  int const registers = c.block_n / 2;
  int const most = c.min_ctas_per_sm == 1 ? 192 : c.split_k == 1 ? 96 : 0;
  return consumers(c) == 1 && c.scales == Scales::rows_by_blocks && 3 * registers <= most ? 2 : 1;
}
/// CTAs of a cluster.
constexpr int cluster_size(GroupedGemmSm90Config const& c) {
  return c.cluster_m * c.cluster_n * c.split_k;
}
/// Rows and columns of D that a cluster computes of a tile.
constexpr int cluster_rows(GroupedGemmSm90Config const& c) { return c.block_m * c.cluster_m; }
constexpr int cluster_columns(GroupedGemmSm90Config const& c) { return c.block_n * c.cluster_n; }
/// Columns of D that a CTA finishes.
constexpr int epilogue_n(GroupedGemmSm90Config const& c) { return c.block_n / c.split_k; }
/// Elements of K in a stage: 128 bytes of a row; with scales, what shares one.
constexpr int block_k(GroupedGemmSm90Config const& c) { return 1024 / bits(c.a); }

/// The tiles of A and B in shared memory, (mn, block_k, stages), and how they come there.
constexpr OperandTile a_tile(GroupedGemmSm90Config const& c, int stages = 1) {
  return {bits(c.a), c.block_m, block_k(c), 1, stages};
}
constexpr OperandTile b_tile(GroupedGemmSm90Config const& c, int stages = 1) {
  return {bits(c.b), c.block_n, block_k(c), 1, stages};
}
constexpr TmaBoxes a_fetch(GroupedGemmSm90Config const& c) {
  return tma_boxes(a_tile(c), c.cluster_n);
}
constexpr TmaBoxes b_fetch(GroupedGemmSm90Config const& c) {
  return tma_boxes(b_tile(c), c.cluster_m);
}
/// Scales of a stage. Of A one for each row, wave by wave: a box of them begins at a multiple of
/// four rows, so it has four more than the wave, and lies in a slot of whole 128 bytes. Of B, where
/// its rows have their own, one for each.
constexpr int scale_box(GroupedGemmSm90Config const& c) { return wave_m(c) + 4; }
constexpr int scale_slot(GroupedGemmSm90Config const& c) { return wave_m(c) + 32; }
constexpr int b_scales(GroupedGemmSm90Config const& c) {
  return c.scales == Scales::rows_by_rows ? c.block_n : 0;
}

/// Bytes that TMA brings to a stage, ...
constexpr int stage_bytes(GroupedGemmSm90Config const& c) {
  int const a_scales = c.scales == Scales::none ? 0 : waves(c) * scale_box(c);
  return a_fetch(c).bytes + b_fetch(c).bytes + 4 * (a_scales + b_scales(c));
}
/// ... the pieces of D on their way out (64 rows of a warpgroup, at most 128 bytes wide): of 16
/// bits all of a tile's, so that a warpgroup waits for none, of f32 for groups of k four (1 %
/// faster with a stage less), ...
constexpr EpilogueSm90Spec epilogue(GroupedGemmSm90Config const& c) {
  EpilogueSm90Spec spec = {
      .out = c.out, .n = c.block_n, .warps = 4 * consumers(c), .rows = kWgmmaM};
  // Three halves of the widest piece take less room than two of it.
  if (2 * c.block_n == 3 * store_n(spec)) spec.piece_bytes = 64;
  int const pieces = (c.block_n + store_n(spec) - 1) / store_n(spec);
  int const of_tile = waves(c) * pieces;
  int const most = bits(c.out) == 16                  ? of_tile
                   : c.scales == Scales::rows_by_rows ? 4
                   : waves(c) > 1                     ? 1
                                                      : 2;
  spec.buffers = of_tile == 1 ? 2 : of_tile < most ? of_tile : most;
  return spec;
}
constexpr int store_bytes(GroupedGemmSm90Config const& c) {
  OperandTile const d = store_tile(epilogue(c));
  return c.split_k > 1 ? 0 : d.stages * d.mn * d.k * d.bits / 8;
}
/// ... those of the sums that a cluster's CTAs give to one, f32, ...
constexpr int sum_bytes(GroupedGemmSm90Config const& c) {
  return 4 * c.block_m * epilogue_n(c) * (c.split_k - 1);
}
/// ... and how many stages an H100's shared memory holds, 228 KB an SM less 1 KB for each CTA: 2 KB
/// are left for barriers and alignment.
constexpr int stages(GroupedGemmSm90Config const& c) {
  int const a_gaps = c.scales == Scales::none ? 0 : waves(c) * (scale_slot(c) - scale_box(c));
  int const budget = (228 / c.min_ctas_per_sm - 3) * 1024 - store_bytes(c) - sum_bytes(c);
  int const most = budget / (stage_bytes(c) + 4 * a_gaps);
  return most < kMostStages ? most : kMostStages;
}

/// Where D goes and C comes from, both in the output type, row-major. C may be D.
struct GroupedGemmOutput {
  void* d = nullptr;
  void const* c = nullptr;  ///< null: there is none
  std::int64_t ldd = 0;
  std::int64_t ldc = 0;
  std::int64_t d_group_stride = 0;  ///< elements from one group's D to the next: of Grouping::k
  std::int64_t c_group_stride = 0;
  int n = 0;             ///< columns
  bool vectors = false;  ///< whether rows of D and C begin at multiples of 16 bytes and N is whole
                         ///< vectors; else single elements are stored
};

/// B's scales where 128 rows share them: (groups, n / 128, blocks of K), rounded up, contiguous.
struct BlockScales {
  float const* scale = nullptr;
  int blocks_n = 0;
  int blocks_k = 0;
};

/// How D is stored.
enum class GroupedStore : std::uint8_t {
  rows,    ///< from registers, with C
  pieces,  ///< through shared memory: by TMA where 64 rows are a group's; there is no C
  added,   ///< the same, added to what is there: C is D, of f32
};

/// What the kernel is launched with. The tensor maps describe A as (k, rows, 1) and B as (k, n,
/// groups) with the boxes of a_fetch and b_fetch; scale_a as (rows, blocks of K, 1) and scale_b,
/// where rows have their own, as (n, blocks of K, groups), boxes of scale_box and block_n by 1.
/// With Grouping::k, A, B and their scales have one group.
struct GroupedGemmSm90Params {
  TensorMap a;
  TensorMap b;
  TensorMap scale_a;
  TensorMap scale_b;
  TensorMap d;
  TensorMap last_d;  ///< of the last piece of a row of a tile
  GroupTiles tiles;
  int clusters = 1;
  BlockScales b_blocks;
  GroupedGemmOutput out;
  GroupedStore store = GroupedStore::rows;
};

}  // namespace tegula
