#pragma once

#include <cstdint>

#include "tegula/arch/tensor_map.hpp"
#include "tegula/kernel/append_keys_config.hpp"
#include "tegula/kernel/attention_config.hpp"
#include "tegula/kernel/attention_mask.hpp"
#include "tegula/kernel/attention_output.hpp"
#include "tegula/kernel/packed_heads.hpp"
#include "tegula/numeric/dtype.hpp"
#include "tegula/pipeline/divisor.hpp"
#include "tegula/pipeline/row_blocks.hpp"
#include "tegula/pipeline/tile_queue.hpp"
#include "tegula/tensor/tma_box.hpp"

namespace tegula {

/// What a consumer's softmax runs beneath.
enum class AttentionOverlap : std::uint8_t {
  none,             ///< no product of its own: it waits for both
  intra_warpgroup,  ///< its own O += P V of the block before
  pingpong,         ///< and the other consumers' products, which take turns at the tensor cores
};

/// One configuration of the Hopper attention kernel: everything inside a CTA's tile.
///
/// Each of `consumers` warpgroups computes 64 rows of O. The CTA walks the keys in blocks of
/// `block_n`; K and V pass through `stages` shared-memory buffers each. `head_dim` and `head_dim_v`
/// are extents of the tiles: a problem whose own are less is padded with zeros by TMA.
///
/// The rows of a consumer are those of one head, or positions of several heads that share keys
/// (PackedHeads): a launch says how many. `serving` adds what inference servers need
/// (AttentionServing): sequences of their own lengths, paged keys, and keys that are split over
/// CTAs.
struct AttentionSm90Config {
  DType dtype = DType::bf16;
  int head_dim = 128;    ///< of Q and K
  int head_dim_v = 128;  ///< of V and O
  int block_n = 128;
  int consumers = 2;
  int stages = 2;
  Exponential exponential = Exponential::ex2_approx;
  bool serving = false;
  /// Of 8-bit operands, of whose products' sums the tensor core keeps 13 bits: columns of O whose
  /// P V of one block of keys is computed at a time, and added to O in f32. 0: the tensor core adds
  /// blocks up.
  int promoted = 0;
  /// Multi-head latent attention: V is the first head_dim_v columns of K, of which one copy is
  /// loaded. Two warpgroups share the rows of the one consumer, and have half of O's columns each.
  bool latent = false;
  AttentionOverlap overlap = AttentionOverlap::pingpong;
  /// Quarters of a row's exponentials that come before the wait for O += P V, to run beneath it;
  /// the others come after, between the instructions that round P.
  int beneath = 4;

  constexpr bool operator==(AttentionSm90Config const&) const = default;
};

/// Rows of Q that a consumer computes: M of wgmma.
inline constexpr int kAttentionConsumerRows = 64;
constexpr int consumer_rows(AttentionSm90Config const&) { return kAttentionConsumerRows; }
constexpr int block_m(AttentionSm90Config const& c) { return kAttentionConsumerRows * c.consumers; }

/// Warpgroups that compute, and the columns of O that one of them has.
constexpr int warpgroups(AttentionSm90Config const& c) { return c.latent ? 2 : c.consumers; }
constexpr int columns_of_one(AttentionSm90Config const& c) {
  return c.latent ? c.head_dim_v / 2 : c.head_dim_v;
}

/// Whether the consumers take turns at the tensor cores.
constexpr bool takes_turns(AttentionSm90Config const& c) {
  return c.consumers > 1 && c.overlap == AttentionOverlap::pingpong;
}

/// Whether V is transposed on its way to the second product: wgmma reads operands of 8 bits K-major
/// only, and V's head dimension is contiguous, which is mn there.
constexpr bool transposes_v(AttentionSm90Config const& c) { return bits(c.dtype) == 8; }

/// The shared memory of a CTA with so many buffers of Q, or a little more: the tiles, and 1 KB for
/// barriers and alignment, or 2 where V is transposed.
constexpr int shared_bytes(AttentionSm90Config const& c, int q_stages) {
  // As TMA brings it, and transposed: each with barriers. Latent: none but K's, and P.
  int const of_v = transposes_v(c) ? 2 : 1;
  int const of_rows = (c.head_dim * q_stages + (c.latent ? c.block_n : 0)) * kAttentionConsumerRows,
            of_keys = (c.head_dim + (c.latent ? 0 : of_v * c.head_dim_v)) * c.block_n * c.stages;
  return (of_rows + of_keys) * bits(c.dtype) / 8 + 1024 * of_v;
}
inline constexpr int kAttentionSm90SharedBytes = 227 * 1024;  ///< that a CTA can have

/// Buffers of a consumer's rows of Q: two for each where there is memory for them, so that the rows
/// of its next tile come while it computes. Else one.
constexpr int q_stages(AttentionSm90Config const& c) {
  int const twice = 2 * c.consumers;
  return !c.latent && shared_bytes(c, twice) <= kAttentionSm90SharedBytes ? twice : c.consumers;
}
constexpr int shared_bytes(AttentionSm90Config const& c) { return shared_bytes(c, q_stages(c)); }

/// Registers of a thread: they move from the producer to two consumers or three, which are launched
/// with 168 each, or with 128. One consumer has as many as a thread can have. A producer's warps
/// need more where they serve or transpose.
constexpr int producer_registers(AttentionSm90Config const& c) {
  if (c.serving || transposes_v(c)) return 56;
  return c.consumers == 3 ? 32 : 24;
}
constexpr int consumer_registers(AttentionSm90Config const& c) {
  int const warpgroups = 1 + c.consumers, launched = c.consumers == 3 ? 128 : 168;
  return (warpgroups * launched - producer_registers(c)) / c.consumers / 8 * 8;
}

/// Tiles as MMA operands, in (mn, k): each consumer's rows of Q, and K, are K-major; V (head_dim_v,
/// block_n) is MN-major as TMA brings it. Of latent attention these are single stages, and V's
/// tile lies over K's.
constexpr OperandTile q_tile(AttentionSm90Config const& c) {
  return {bits(c.dtype), kAttentionConsumerRows, c.head_dim, 1, q_stages(c)};
}
constexpr OperandTile k_tile(AttentionSm90Config const& c) {
  return {bits(c.dtype), c.block_n, c.head_dim, 1, c.latent ? 1 : c.stages};
}
constexpr OperandTile loaded_v_tile(AttentionSm90Config const& c) {
  return {bits(c.dtype), c.head_dim_v, c.block_n, 0, c.latent ? 1 : c.stages};
}
constexpr OperandTile v_tile(AttentionSm90Config const& c) {
  return {bits(c.dtype), c.head_dim_v, c.block_n, transposes_v(c) ? 1 : 0, c.latent ? 1 : c.stages};
}
/// P of latent attention, which the second warpgroup reads from shared memory.
constexpr OperandTile p_tile(AttentionSm90Config const& c) {
  return {bits(c.dtype), kAttentionConsumerRows, c.block_n, 1, 1};
}

/// What q, k and v of 8 bits are to be multiplied with: a factor for each batch and head of keys
/// (FlashAttention-3's q_descale, k_descale, v_descale), or null for 1.
struct AttentionDescales {
  float const* q = nullptr;
  float const* k = nullptr;
  float const* v = nullptr;
  DescaleStrides stride;
};

/// Floats of a row of AttentionServing::partial: a warpgroup's columns of O, the offset of its
/// softmax, the sum, and as many as a multiple of 16 bytes takes.
constexpr int attention_partial_row(AttentionSm90Config const& c) { return columns_of_one(c) + 4; }

/// What a launch of a `serving` configuration has besides: where each sequence lies, and how keys
/// are shared between CTAs.
///
/// Queries and keys of a sequence begin at token q_begin[batch] and k_begin[batch] of packed
/// tensors, whose batch extent is 1; where these are null, at token 0 of the batch. There are
/// q_begin[batch + 1] - q_begin[batch] queries, k_length[batch] keys, or k_begin[batch + 1] -
/// k_begin[batch]; where these are null, as many as the mask says. Keys that append_keys has
/// appended in the launch before count besides k_length.
///
/// Paged keys lie in `pages` pages of page_size tokens, which the tensor maps of K and V have for
/// their batches: key j of a sequence is token j % page_size of page page_table[batch *
/// table_stride + j / page_size]. A box of these maps has box_keys tokens.
///
/// A tile's blocks of keys are computed in parts of part_blocks. Where there are several, each
/// leaves its rows' sums in `partial`, and the one that finishes last, by `arrivals`, adds them up:
/// attention_parts.hpp.
struct AttentionServing {
  int const* q_begin = nullptr;
  int const* k_begin = nullptr;
  int const* k_length = nullptr;
  NewKeys new_keys;
  int const* page_table = nullptr;
  std::int64_t table_stride = 0;
  int pages = 0;
  int page_size = 1;
  Divisor by_page_size{1};
  int box_keys = 0;
  bool clears_tail = false;  ///< what follows a sequence's last key may be anything, NaN included
  int batches = 1;
  int heads = 1;  ///< packed ones, of a batch
  Divisor by_heads{1};
  int part_blocks = AttentionMask::unlimited;
  int most_blocks = AttentionMask::unlimited;  ///< that a tile's rows see, by the window
  int partial_rows = 0;                        ///< of a consumer in `partial`
  float* partial = nullptr;
  std::uint32_t* arrivals = nullptr;  ///< zeros, which the launch leaves 0
};

/// What the Hopper attention kernel is launched with: O = softmax(scale Q K^T) V, for each batch
/// and head.
///
/// The tensor maps of K and V have the axes (head_dim, token, head, batch), that of Q those of
/// `packed`; their boxes are those of q_tile, k_tile and loaded_v_tile. `order` is that of blocks
/// of positions, of packed heads. Which keys a row sees: `mask`. Scores are scale S, or with a
/// softcap c > 0, c tanh(scale S / c). A sink, one number a head, takes part in a row's softmax as
/// a score without a value.
struct AttentionSm90Params {
  TensorMap q;
  TensorMap k;
  TensorMap v;
  AttentionMask mask;
  RowBlockOrder order;
  int ctas = 1;                    ///< of the grid
  TileCounter* counter = nullptr;  ///< null: every CTA takes every ctas-th block of rows
  PackedHeads packed{1, kAttentionConsumerRows};
  Divisor heads_per_kv_head{1};  ///< packed heads that share a head of K and V
  float scale = 0;               ///< of the scores, or, with a softcap, the softcap
  float softcap_scale = 0;       ///< with a softcap: scale / softcap; else 0
  AttentionDescales descales;    ///< of operands of 8 bits
  AttentionOutput out;
  AttentionServing serving;  ///< of a configuration that is `serving`
};

}  // namespace tegula
