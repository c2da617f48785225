#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "tegula/device/arguments.hpp"
#include "tegula/kernel/gemm_config.hpp"
#include "tegula/kernel/gemm_sm90_config.hpp"

/// What the GEMM kernels are launched with, for tests that launch kernels of their own.
///
/// This is written a second time on purpose, apart from the device layer's `lower`: it is the
/// tests' one oracle of parameters. The configurations of the tables are launched with `lower`'s,
/// the forms of gemm_sm90 and the mutants with these, and all are held to the same exact results.
/// So a mistake in either shows.
///
/// Preconditions: all that GemmArguments lets one leave out is set.
namespace tegula {

/// Of gemm_sm80.
inline GemmParams independent_params(GemmArguments const& g) {
  return {.a = g.a,
          .b = g.b,
          .c = g.c,
          .bias = g.bias,
          .d = g.d,
          .scale_a = g.scale_a,
          .scale_b = g.scale_b,
          .m = static_cast<int>(g.m),
          .n = static_cast<int>(g.n),
          .k = static_cast<int>(g.k),
          .lda = *g.lda,
          .ldb = *g.ldb,
          .ldc = *g.ldc,
          .ldd = *g.ldd,
          .batch = static_cast<int>(g.batch),
          .a_batch = *g.a_batch_stride,
          .b_batch = *g.b_batch_stride,
          .c_batch = *g.c_batch_stride,
          .d_batch = *g.d_batch_stride,
          .alpha = g.alpha,
          .beta = g.beta,
          .activation = g.activation};
}

/// The clusters' tiles of D, all of one width, or as many parts of each.
inline TileScheduler equal_tiles(GemmSm90Config const& c, GemmArguments const& g,
                                 Raster raster = Raster::along_n, int group = 1, int parts = 1) {
  auto const tiles = [](std::int64_t extent, int tile) {
    return static_cast<int>((extent + tile - 1) / tile);
  };
  return {.tiles_m = tiles(g.m, c.block_m * c.cluster_m),
          .tiles_n = tiles(g.n, c.block_n * c.cluster_n),
          .batches = static_cast<int>(g.batch) * parts,
          .raster = raster,
          .group = group};
}

/// Clusters of a grid, at most `most`; where they split K, one for each tile.
inline int clusters_of(GemmSm90Config const& c, TilePartition const& tiling, int most) {
  return c.split_k > 1 ? tiling.tiles : std::min(most, tiling.tiles);
}

/// The memory in which the parts' sums meet: allocate(bytes) gives zeros.
template <class Allocate>
PartialSums partial_sums(GemmSm90Config const& c, TilePartition const& tiling, Allocate allocate) {
  std::int64_t const warps = std::int64_t{tiling.tiles} * cluster_size(c) * warps_of_tile(c);
  return {static_cast<float*>(allocate(tiling.tiles * part_bytes(c))),
          static_cast<std::uint32_t*>(allocate(4 * warps))};
}

/// The problem that a configuration computes instead, where its D is transposed: D^T = B^T A^T.
inline GemmArguments exchanged(GemmArguments g) {
  std::swap(g.m, g.n), std::swap(g.a, g.b), std::swap(g.lda, g.ldb);
  std::swap(g.a_major, g.b_major), std::swap(g.a_batch_stride, g.b_batch_stride);
  DType const in = g.in;
  g.in = g.in_b.value_or(in), g.in_b = in;
  return g;
}

/// Of gemm_sm90. encode(description) makes a tensor map of the machine.
template <class Encode>
GemmSm90Params independent_params(GemmSm90Config const& config, GemmArguments const& g,
                                  GemmSm90Schedule const& schedule, Encode encode,
                                  GemmSm90Parts const& parts = {}) {
  auto const batches = [&](std::int64_t stride) { return stride == 0 ? 1 : g.batch; };
  TmaMatrices const a = {
      g.in, g.a, g.m, g.k, batches(*g.a_batch_stride), *g.lda, *g.a_batch_stride};
  TmaMatrices const b = {*g.in_b,          g.b, g.n, g.k, batches(*g.b_batch_stride), *g.ldb,
                         *g.b_batch_stride};
  TmaMatrices const c = {*g.out, g.c, g.m, g.n, g.batch, *g.ldc, *g.c_batch_stride};
  // TMA stores whole units of a row; what is left of it is stored otherwise. Transposed, a row is a
  // column of these.
  int const by_tma =
      config.transposed ? 0 : columns_by_tma(static_cast<int>(g.n), store_unit(*g.out));
  TmaMatrices const d = {*g.out,           g.d, g.m, by_tma > 0 ? by_tma : g.n, g.batch, *g.ldd,
                         *g.d_batch_stride};
  auto const maps = [&](TmaMatrices const& x) {
    if (config.store_buffers == 0) return PerPiece<TensorMap>{};
    PerPiece<TmaBoxes> const pieces = store_boxes(epilogue(config));
    return PerPiece<TensorMap>{encode(describe(x, pieces.whole)), encode(describe(x, pieces.last)),
                               encode(describe(x, pieces.last_narrow))};
  };
  // The boxes of an operand's last tile have no rows beyond it.
  auto const last = [](TmaBoxes const& boxes, std::int64_t rows) {
    int const rest = static_cast<int>(rows % (boxes.box_mn * boxes.boxes_mn));
    return can_be_cut(boxes) && rest > 0 ? first_rows(boxes, rest) : boxes;
  };
  TmaBoxes const whole_a = a_fetch(config), whole_b = b_fetch(config);
  TmaBoxes const last_a = last(whole_a, g.m),
                 last_b = schedule.tiling.fitted() ? whole_b : last(whole_b, g.n);
  return {.problem = {.a = encode(describe(a, g.m <= config.block_m ? last_a : whole_a)),
                      .b = encode(describe(b, g.n <= config.block_n ? last_b : whole_b)),
                      .m = static_cast<int>(g.m),
                      .n = static_cast<int>(g.n),
                      .k = static_cast<int>(g.k),
                      .unloaded_a = whole_a.peers * (whole_a.box_mn - last_a.box_mn),
                      .unloaded_b = whole_b.peers * (whole_b.box_mn - last_b.box_mn),
                      .a_batched = g.batch > 1 && *g.a_batch_stride != 0,
                      .b_batched = g.batch > 1 && *g.b_batch_stride != 0,
                      .a_last = encode(describe(a, last_a)),
                      .b_last = encode(describe(b, last_b))},
          .schedule = schedule,
          .epilogue = {.c = g.c != nullptr ? maps(c) : PerPiece<TensorMap>{},
                       .d = maps(d),
                       .d_address = g.d,
                       .ldd = *g.ldd,
                       .d_batch_stride = *g.d_batch_stride,
                       .bias = g.bias,
                       .scale_a = g.scale_a,
                       .scale_b = g.scale_b,
                       .alpha = g.alpha,
                       .beta = g.beta,
                       .c_batched = g.batch > 1,
                       .activation = g.activation},
          .parts = parts};
}

}  // namespace tegula
