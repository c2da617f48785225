#pragma once

#include <cstdint>

#include "tegula/arch/tensor_map.hpp"
#include "tegula/atom/mma_spec.hpp"
#include "tegula/kernel/activation.hpp"
#include "tegula/kernel/gemm_config.hpp"
#include "tegula/layout/refuse.hpp"
#include "tegula/numeric/dtype.hpp"
#include "tegula/pipeline/first_tiles.hpp"
#include "tegula/pipeline/pace.hpp"
#include "tegula/pipeline/tiling.hpp"

namespace tegula {

/// How the consumer warpgroups of a CTA share the work. One producer warp feeds them in each.
enum class Schedule : std::uint8_t {
  basic,        ///< one consumer warpgroup computes a tile
  cooperative,  ///< two compute the upper and the lower half of one tile
  pingpong,     ///< two compute a tile each, one's epilogue under the other's main loop
};

/// One configuration of the Hopper GEMM kernel: everything inside a CTA's tile.
///
/// A tile is block_m x block_n elements of D: a CTA's (basic, cooperative) or a consumer's (pingpong). K is
/// walked 128 bytes at a time. The CTAs of a cluster of cluster_m x cluster_n compute neighbouring tiles and
/// fetch what they share once, by multicast. With split_k > 1 the cluster is instead split_k CTAs that
/// compute one tile together, each a share of K. With narrow_n > 0 the kernel has a second main loop, for
/// tiles of that many columns, so that D may be cut into both (pipeline/tiling.hpp).
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
  int narrow_n = 0;       ///< columns of the narrower tiles, where D is cut into both; 0: there are none
  int store_buffers = 2;  ///< of each consumer warp, for D on its way out
  int min_ctas_per_sm = 1;
  Activation activation = Activation::none;

  constexpr bool operator==(GemmSm90Config const&) const = default;
};

constexpr int consumers(GemmSm90Config const& c) { return c.schedule == Schedule::basic ? 1 : 2; }
/// Elements of K in a stage: 128 bytes of a row, the span of the widest swizzle.
constexpr int block_k(GemmSm90Config const& c) { return 1024 / bits(c.a); }
/// CTAs of a cluster.
constexpr int cluster_size(GemmSm90Config const& c) { return c.cluster_m * c.cluster_n * c.split_k; }
/// Rows of D that one consumer computes.
constexpr int consumer_m(GemmSm90Config const& c) {
  return c.schedule == Schedule::cooperative ? c.block_m / 2 : c.block_m;
}

/// How one operand's tile of (mn, block_k) comes to shared memory: as `boxes` TMA boxes of box_mn x block_k,
/// of which each of the `peers` CTAs of the cluster that need the tile fetches every peers-th for all.
/// K-major, a box is rows of 128 bytes; MN-major it is 128 bytes of mn wide.
struct OperandBoxes {
  int boxes;
  int box_mn;
  int peers;
};

constexpr OperandBoxes operand_boxes(DType type, Major major, int mn, int peers) {
  int const boxes = major == Major::k ? peers : mn * bits(type) / 1024;
  return {boxes, mn / boxes, peers};
}
constexpr OperandBoxes a_boxes(GemmSm90Config const& c) {
  return operand_boxes(c.a, c.a_major, c.block_m, c.cluster_n);
}
constexpr OperandBoxes b_boxes(GemmSm90Config const& c) {
  return operand_boxes(c.b, c.b_major, c.block_n, c.cluster_m);
}

/// Columns of D that a consumer's epilogue computes: with split_k, the CTA's share of the tile.
constexpr int epilogue_n(GemmSm90Config const& c) { return c.block_n / c.split_k; }
/// Columns that a warp stores at a time, 16 rows each: 128 bytes, where the tile is that wide, ...
constexpr int store_n(GemmSm90Config const& c) {
  int columns = 1024 / bits(c.out);
  while (columns > epilogue_n(c)) columns /= 2;
  return columns;
}
/// ... and in the last piece of a row of the tile, which may be narrower.
constexpr int last_store_n(GemmSm90Config const& c) { return (epilogue_n(c) - 1) % store_n(c) + 1; }

/// Likewise of a narrower tile.
constexpr int last_narrow_store_n(GemmSm90Config const& c) {
  return c.narrow_n == 0 ? last_store_n(c) : (c.narrow_n - 1) % store_n(c) + 1;
}
/// The columns of a cluster's tiles.
constexpr TileWidths tile_widths(GemmSm90Config const& c) {
  return {c.block_n * c.cluster_n, c.narrow_n * c.cluster_n};
}

/// Shared memory of a CTA besides the stages: for each consumer warp store_buffers of 16 x store_n elements
/// of D; with split_k the other CTAs' sums in f32; barriers, with room for alignment.
constexpr int epilogue_bytes(GemmSm90Config const& c) {
  int const staging = 4 * consumers(c) * c.store_buffers * 16 * store_n(c) * bits(c.out) / 8;
  int const partial_sums = c.split_k > 1 ? 4 * c.block_m * c.block_n : 0;
  return staging + partial_sums + 1024;
}
constexpr int stage_bytes(GemmSm90Config const& c) { return 128 * (c.block_m + c.block_n); }
/// As many stages as an H100's shared memory holds, 227 KB a CTA (228 KB an SM, less 1 KB for each CTA).
constexpr int stages(GemmSm90Config const& c) {
  int const budget = (228 / c.min_ctas_per_sm - 1) * 1024;
  int const most = (budget - epilogue_bytes(c)) / stage_bytes(c);
  return most < 12 ? most : 12;
}

/// Elements of D that TMA stores at once: at the end of a row it stores 16 bytes or none.
constexpr int store_unit(DType out) { return 128 / bits(out); }
/// The columns of D, from the first, that TMA stores; the last few are stored one by one.
TEGULA_HOST_DEVICE constexpr int columns_by_tma(int n, int store_unit) { return n / store_unit * store_unit; }

/// What the kernel is launched with: D = activation(alpha scale_a scale_b A B + beta C + bias), for each
/// batch. The tensor maps describe A as (k, m, batch) or (m, k, batch) with boxes of a_boxes(config), B
/// likewise, C as (n, m, batch) and D as (columns_by_tma(n, store_unit(out)), m, batch) with boxes of store_n
/// x 16.
struct GemmSm90Params {
  // What the first loads wait for, in as few lines of the constant cache as can be.
  int k = 0;
  int clusters = 1;        ///< in the grid; each walks the tiling's tiles, clusters apart
  bool a_batched = false;  ///< false: all batches share A
  bool b_batched = false;
  FirstTiles first_tiles;  ///< where the tiling has them; may be empty
  Tiling tiling;           ///< into clusters' tiles
  TensorMap a;
  TensorMap b;
  TensorMap c;                      ///< in the output type; used where beta is not 0, ...
  TensorMap c_last;                 ///< ... as are these: with the boxes of d_last ...
  TensorMap c_last_narrow;          ///< ... and of d_last_narrow
  TensorMap d;                      ///< any, where columns_by_tma is 0
  TensorMap d_last;                 ///< with boxes of last_store_n x 16; not read where that is store_n
  TensorMap d_last_narrow;          ///< with boxes of last_narrow_store_n x 16; read where D has such tiles
  void* d_address = nullptr;        ///< D, ...
  std::int64_t ldd = 0;             ///< ... its rows and batches, that many elements apart: used where
  std::int64_t d_batch_stride = 0;  ///< columns_by_tma is not n
  void const* bias = nullptr;       ///< n values in the output type, or null
  float const* scale_a = nullptr;   ///< one value each, or null: fp8's scale of a tensor
  float const* scale_b = nullptr;
  int m = 0;
  int n = 0;
  bool c_batched = false;
  float alpha = 1;
  float beta = 0;
  int pace_steps = 0;            ///< along K, between meetings of the clusters
  PaceCounters* pace = nullptr;  ///< null: they do not meet; not with split_k
};

}  // namespace tegula
