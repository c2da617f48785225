#pragma once

#include "tegula/arch/tensor_memory_address.hpp"
#include "tegula/atom/mma_spec.hpp"
#include "tegula/kernel/block_scale.hpp"
#include "tegula/kernel/epilogue_sm90_config.hpp"
#include "tegula/kernel/gemm_cluster_spec.hpp"
#include "tegula/kernel/gemm_sm90_config.hpp"
#include "tegula/numeric/dtype.hpp"
#include "tegula/pipeline/work_tiles.hpp"
#include "tegula/tensor/tma_box.hpp"

namespace tegula {

/// One configuration of the Blackwell GEMM kernel: everything inside a CTA's tile of 128 x block_n
/// elements of D, whose accumulators lie in tensor memory, twice where there is room. K is walked
/// 128 bytes at a time. Two CTAs may share a tile of 256 x block_n: each loads half of A's rows and
/// half of B's. A cluster computes cluster_tiles_m x cluster_tiles_n neighbouring tiles, and its
/// CTAs fetch what they share once, by multicast (cluster_of; pairs lie along m). Operands with
/// block scales are of 8, 6 or 4 bits each with kMxScale, or e2m1 both with kNvScale, both K-major;
/// a tile has 128 or 256 columns then. With scales and of groups a cluster is one CTA, or one pair.
struct GemmSm100Config {
  DType a = DType::bf16;
  DType b = DType::bf16;
  DType out = DType::bf16;
  Major a_major = Major::k;
  Major b_major = Major::k;
  int block_n = 256;
  int ctas = 1;             ///< that multiply together, and share a tile: one, or a pair
  int cluster_tiles_m = 1;  ///< of a cluster: each a CTA's, or a pair's
  int cluster_tiles_n = 1;
  bool launched = false;   ///< tiles are dealt by cluster launch control; else beforehand
  int store_buffers = 2;   ///< of each warp of the epilogue, for D on its way out
  bool activates = false;  ///< whether D is activated: by which function is known only at run time
  BlockScale scale = {};   ///< of the elements of A and B
  bool grouped = false;    ///< whether D is that of groups, whose extents lie in device memory

  /// Rows of a tile of D: the lanes of tensor memory.
  static constexpr int block_m = kTensorLanes;

  constexpr bool operator==(GemmSm100Config const&) const = default;
};

namespace detail {
/// Bits of an element in shared memory: of fewer than 8, those of a pair, or of one unpacked.
constexpr int shared_bits(DType type) { return bits(type) < 8 ? 8 : bits(type); }
constexpr int tile_bytes(OperandTile const& tile) { return tile.mn * tile.k * tile.bits / 8; }
/// The boxes of a tile; what is unpacked as it is loaded counts packed at the mbarrier.
constexpr TmaBoxes fetch_of(OperandTile const& tile, DType type, bool pairs, int peers) {
  TmaBoxes boxes = tma_boxes(tile, peers);
  if (!pairs && bits(type) < 8) boxes.bytes = boxes.bytes * bits(type) / 8;
  return boxes;
}
}  // namespace detail

constexpr GemmClusterSpec cluster_of(GemmSm100Config const& c) {
  return {.m = c.ctas * c.cluster_tiles_m, .n = c.cluster_tiles_n, .group = c.ctas};
}
/// CTAs of a cluster.
constexpr int cluster_size(GemmSm100Config const& c) { return cluster_of(c).size(); }

/// Elements of K in a stage: 128 bytes of a row, the span of the widest swizzle.
constexpr int block_k(GemmSm100Config const& c) {
  return are_pairs(c.a, c.b) ? 256 : 1024 / detail::shared_bits(c.a);
}
/// Steps of block_k as tiles count them: in pairs, of those.
constexpr int tile_k(GemmSm100Config const& c) {
  return are_pairs(c.a, c.b) ? block_k(c) / 2 : block_k(c);
}

/// The tiles of A and B in shared memory, (mn, tile_k, stages), and how they come there: CTAs of a
/// cluster that need the same rows, or columns, share their boxes.
constexpr OperandTile a_tile(GemmSm100Config const& c, int stages = 1) {
  return {detail::shared_bits(c.a), c.block_m, tile_k(c), c.a_major == Major::k ? 1 : 0, stages};
}
constexpr OperandTile b_tile(GemmSm100Config const& c, int stages = 1) {
  return {detail::shared_bits(c.b), c.block_n / c.ctas, tile_k(c), c.b_major == Major::k ? 1 : 0,
          stages};
}
constexpr TmaBoxes a_fetch(GemmSm100Config const& c) {
  return detail::fetch_of(a_tile(c), c.a, are_pairs(c.a, c.b), cluster_of(c).n);
}
constexpr TmaBoxes b_fetch(GemmSm100Config const& c) {
  return detail::fetch_of(b_tile(c), c.b, are_pairs(c.a, c.b), cluster_of(c).groups_m());
}

/// What one CTA loads of the operands, as GemmOperandTiles takes it.
constexpr GemmSm100Config operands(GemmSm100Config c) {
  c.block_n /= c.ctas;
  return c;
}

/// Of the four warps of a warpgroup, each of which reaches 32 rows of the tile and stores 16 at a
/// time.
constexpr EpilogueSm90Spec epilogue(GemmSm100Config const& c) {
  return {.out = c.out,
          .n = c.block_n,
          .warps = 4,
          .warp_rows = 32,
          .first_thread = kWarpgroupSize,
          .buffers = c.store_buffers,
          .activates = c.activates};
}
constexpr WorkTileSpec work_tiles(GemmSm100Config const& c) {
  GemmClusterSpec const cluster = cluster_of(c);
  return {.m = c.block_m,
          .n = c.block_n,
          .cluster_m = cluster.m,
          .cluster_n = cluster.n,
          .ctas = cluster.size()};
}
/// The columns of a cluster's tiles.
constexpr TileWidths tile_widths(GemmSm100Config const& c) {
  return {c.block_n * c.cluster_tiles_n, 0};
}

/// Tiles whose accumulators there is room for in tensor memory: one is computed while another is
/// stored; with scales beside 256 columns, one.
constexpr int accumulators(GemmSm100Config const& c) {
  return c.scale.block != 0 && c.block_n == 256 ? 1 : 2;
}

/// Pieces of scales (kernel/block_scale.hpp) along k of a stage, for each 128 rows of A, or of B.
constexpr int scale_pieces(GemmSm100Config const& c) {
  return c.scale.block == 0 ? 0 : block_k(c) / (kScalePieceScales * c.scale.block);
}
/// Times 128 rows of B whose scales a CTA has: all of a tile's, also of a pair's.
constexpr int scale_rows_b(GemmSm100Config const& c) { return c.block_n / kScalePieceRows; }
constexpr int scale_bytes(GemmSm100Config const& c) {
  return (1 + scale_rows_b(c)) * scale_pieces(c) * kScalePieceBytes;
}
/// Columns of tensor memory of a stage's scales, four for a piece: of A, then of B.
constexpr int scale_columns_of_stage(GemmSm100Config const& c) {
  return 4 * (1 + scale_rows_b(c)) * scale_pieces(c);
}

constexpr int stage_bytes(GemmSm100Config const& c) {
  return detail::tile_bytes(a_tile(c)) + detail::tile_bytes(b_tile(c)) + scale_bytes(c);
}
/// Shared memory besides the stages: D on its way out; barriers, with room for alignment.
constexpr int epilogue_bytes(GemmSm100Config const& c) {
  if (c.grouped) return 1024;  // D goes straight from registers
  OperandTile const d = store_tile(epilogue(c));
  return d.stages * d.mn * d.k * d.bits / 8 + 1024;
}
/// As many stages as the 227 KB of a CTA hold, and tensor memory beside the accumulators.
constexpr int stages(GemmSm100Config const& c) {
  int const of_memory = (227 * 1024 - epilogue_bytes(c)) / stage_bytes(c),
            most = of_memory < 12 ? of_memory : 12;
  if (c.scale.block == 0) return most;
  int const beside = (kTensorColumns - accumulators(c) * c.block_n) / scale_columns_of_stage(c);
  return most < beside ? most : beside;
}

/// Columns of tensor memory: the accumulators, then each stage's scales.
constexpr int scale_column(GemmSm100Config const& c, int stage) {
  return accumulators(c) * c.block_n + scale_columns_of_stage(c) * stage;
}
/// As many as the kernel allocates: a power of two.
constexpr int tensor_columns(GemmSm100Config const& c) {
  int columns = kLeastTensorColumns;
  while (columns < scale_column(c, stages(c))) columns *= 2;
  return columns;
}

/// One of scaled_gemm_sm100: a type of its own, for a family is known by its configuration's.
struct ScaledGemmSm100Config : GemmSm100Config {
  constexpr bool operator==(ScaledGemmSm100Config const&) const = default;
};

/// What the kernel is launched with where operands have block scales, which lie as
/// kernel/block_scale.hpp says: the bytes of half a piece, halves along k, 128 rows each, matrices
/// of the batch are the axes of their tensor maps. A box is a stage's. A and B of e2m1 both are
/// tensors of pairs to theirs.
struct ScaledGemmSm100Params : GemmSm90Params {
  TensorMap scale_a, scale_b;
};
inline constexpr int kScaleBoxBytes = kScalePieceBytes / 2;  ///< a box has at most 256 elements

}  // namespace tegula
