#pragma once

#include <cstdint>

#include "tegula/numeric/dtype.hpp"

namespace tegula {

/// How a kernel computes 2^x: by the hardware's `ex2.approx.ftz.f32`, or by the library's own
/// polynomial (`numeric/exp2.hpp`), which is made of exactly rounded operations and therefore gives
/// the same bits on every machine.
enum class Exponential : std::uint8_t { ex2_approx, polynomial };

/// One configuration of the attention kernel: everything inside a CTA's tile.
///
/// A CTA computes `block_m` rows of O for one head; it walks the keys in blocks of `block_n`. Each
/// warp owns `block_m / warps` whole rows. K and V blocks pass through `stages` shared-memory
/// buffers each. `min_ctas_per_sm` bounds the registers of a thread.
struct AttentionConfig {
  DType dtype = DType::bf16;
  int head_dim = 64;
  int block_m = 128;
  int block_n = 64;
  int warps = 4;
  int stages = 2;
  int min_ctas_per_sm = 1;
  /// pairs of B tiles whose fragments are loaded ahead of their instructions
  int fragment_pairs = 4;
  bool causal = false;
  Exponential exponential = Exponential::ex2_approx;

  constexpr bool operator==(AttentionConfig const&) const = default;
};

/// Shared memory of a CTA: Q and the stages of K and V, 16 bits an element.
constexpr int shared_bytes(AttentionConfig const& c) {
  return 2 * c.head_dim * (c.block_m + 2 * c.stages * c.block_n);
}

/// Distances, in elements, between consecutive batches, tokens and heads of a tensor whose head
/// dimension is contiguous.
struct TokenStrides {
  std::int64_t batch = 0;
  std::int64_t seq = 0;
  std::int64_t head = 0;
};

/// Distances between the factors of consecutive batches and heads of keys; 0: they share one.
struct DescaleStrides {
  std::int64_t batch = 0;
  std::int64_t head = 0;
};

/// What the attention kernel is launched with: O = softmax(scale Q K^T) V, for each batch and head.
///
/// q and o are (batch, seq_q, heads, head_dim), k and v (batch, seq_k, kv_heads, head_dim), in any
/// order of the first three. Head h reads the keys and values of head h / (heads / kv_heads). With
/// a causal configuration row i sees the keys j <= i + seq_k - seq_q. lse, if not null, receives
/// ln(sum_j exp(scale S_ij)) as (batch, heads, seq_q), contiguous; -inf for a row that sees no key,
/// whose O is 0.
struct AttentionParams {
  void const* q = nullptr;
  void const* k = nullptr;
  void const* v = nullptr;
  void* o = nullptr;
  float* lse = nullptr;
  int batch = 0;
  int heads = 0;
  int kv_heads = 0;
  int seq_q = 0;
  int seq_k = 0;
  TokenStrides q_stride;
  TokenStrides k_stride;
  TokenStrides v_stride;
  TokenStrides o_stride;
  float scale = 0;  ///< the softmax scale, applied to Q K^T
  int heads_per_l2_group =
      1;  ///< (batch, head) pairs whose CTAs run side by side; see `attention_heads_per_l2_group`
};

}  // namespace tegula
