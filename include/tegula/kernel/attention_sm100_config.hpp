#pragma once

#include "tegula/arch/tensor_memory_address.hpp"
#include "tegula/kernel/attention_sm90_config.hpp"

namespace tegula {

/// One configuration of the Blackwell attention kernel: everything inside a CTA's tile.
///
/// A CTA computes two tiles of 128 rows of O at a time, each with a warpgroup for its softmax. It
/// walks the keys in blocks of `block_n`; K and V pass through `stages` shared-memory buffers each.
/// `head_dim` and `head_dim_v` are extents of the tiles: a problem whose own are less is padded
/// with zeros by TMA.
struct AttentionSm100Config {
  DType dtype = DType::bf16;
  DType out = dtype;     ///< of O: of operands of 8 bits f16 or bf16
  int head_dim = 128;    ///< of Q and K
  int head_dim_v = 128;  ///< of V and O
  int block_n = 128;
  int stages = 2;
  Exponential exponential = Exponential::ex2_approx;
  int polynomials = 0;  ///< of eight exponentials, those by the polynomial nevertheless
  /// Sequences of their own lengths, paged keys and packed heads, as AttentionServing says; keys
  /// are not split over CTAs.
  bool serving = false;

  /// Tiles of Q in flight: what tensor memory has room for.
  static constexpr int consumers = 2;

  constexpr bool operator==(AttentionSm100Config const&) const = default;
};

/// Rows of a tile of Q: the lanes of tensor memory.
constexpr int consumer_rows(AttentionSm100Config const&) { return kTensorLanes; }
constexpr int block_m(AttentionSm100Config const& c) { return kTensorLanes * c.consumers; }
/// Buffers of rows of Q: one for each tile.
constexpr int q_stages(AttentionSm100Config const& c) { return c.consumers; }

/// Tiles as MMA operands, in (mn, k): Q and K are K-major; V (head_dim_v, block_n) is MN-major as
/// TMA brings it.
constexpr OperandTile q_tile(AttentionSm100Config const& c) {
  return {bits(c.dtype), kTensorLanes, c.head_dim, 1, c.consumers};
}
constexpr OperandTile k_tile(AttentionSm100Config const& c) {
  return {bits(c.dtype), c.block_n, c.head_dim, 1, c.stages};
}
constexpr OperandTile loaded_v_tile(AttentionSm100Config const& c) {
  return {bits(c.dtype), c.head_dim_v, c.block_n, 0, c.stages};
}
/// O on its way out: pieces of 128 bytes of each row, the span of the widest swizzle.
constexpr int output_columns(AttentionSm100Config const& c) { return 1024 / bits(c.out); }
constexpr OperandTile o_tile(AttentionSm100Config const& c) {
  return {bits(c.out), kTensorLanes, output_columns(c), 1, 2};
}

/// The shared memory of a CTA, or a little more: the tiles, and 3 KB for the rows' statistics, the
/// barriers and alignment.
constexpr int shared_bytes(AttentionSm100Config const& c) {
  int const of_rows = c.head_dim * kTensorLanes * c.consumers,
            of_keys = (c.head_dim + c.head_dim_v) * c.block_n * c.stages,
            of_output = 2 * kTensorLanes * output_columns(c);
  return ((of_rows + of_keys) * bits(c.dtype) + of_output * bits(c.out)) / 8 + 3 * 1024;
}

/// What the Blackwell attention kernel is launched with: as attention_sm90, and a tensor map of O
/// for boxes of o_tile, which is left empty with `serving`. Of `serving` it has no parts: keys are
/// not split.
struct AttentionSm100Params : AttentionSm90Params {
  TensorMap o;
};

}  // namespace tegula
