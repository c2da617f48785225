#pragma once

/// What a caller asks of the attention and GEMM kernels: plain values, checked in full by `check`
/// before anything runs.
///
/// What is left out follows from the other members when the arguments are used, so they may be
/// filled in any order, and changed. Only what is set stays as it is.
///
/// Pointers are device pointers of the machine that will run the kernel. Extents and strides count
/// elements. The stride of an axis of one element, along which no step is taken, may be anything:
/// it does not count. An extent of zero is refused: an empty problem has no result, and the call
/// that would compute it is more often a slip than a wish.

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "tegula/device/error.hpp"
#include "tegula/kernel/activation.hpp"
#include "tegula/kernel/attention_config.hpp"
#include "tegula/kernel/block_scale.hpp"
#include "tegula/kernel/gemm_config.hpp"

namespace tegula {

/// The largest extent of a problem along any axis. Kernels hold tile coordinates, sums of two of
/// them, and byte offsets along a row in 32 bits, and a tile reaches over the edge by less
/// than 1024.
inline constexpr std::int64_t kMaxExtent = (std::int64_t{1} << 30) - 1024;

/// The most parts that attention's keys are computed in.
inline constexpr std::int64_t kMostSplits = 1024;

/// The most parts that a GEMM's K is computed in by CTAs of different clusters.
inline constexpr int kMostParts = 32;

/// Strides of a contiguous (batch, seq, heads, head_dim) tensor; what does not fit in 64 bits
/// becomes the largest value (and is then refused by `check`).
constexpr TokenStrides contiguous_tokens(std::int64_t seq, std::int64_t heads,
                                         std::int64_t head_dim) {
  std::int64_t token = 0, sequence = 0;
  if (__builtin_mul_overflow(heads, head_dim, &token))
    token = std::numeric_limits<std::int64_t>::max();
  if (__builtin_mul_overflow(seq, token, &sequence))
    sequence = std::numeric_limits<std::int64_t>::max();
  return {sequence, token, head_dim};
}

/// O = softmax(scale Q K^T) V for each batch and head.
///
/// q is (batch, seq_q, heads, head_dim), k (batch, seq_k, kv_heads, head_dim), v and o are the same
/// with head_dim_v: the head dimension is contiguous, the others lie as the strides say. Head h
/// reads the keys and values of head h / (heads / kv_heads).
///
/// Query i stands at key i + seq_k - seq_q (aligned bottom right). With `causal` it sees no key
/// behind that place; with a window, only the keys from window_left before it to window_right
/// behind it. A query that sees no key gives a row of zeros and a log-sum-exp of -inf.
///
/// Operands of e4m3 stand for their values times factors, FlashAttention-3's q_descale, k_descale
/// and v_descale: one for each batch and head of k, which the query heads that read it share. Those
/// of q and k are positive.
///
/// With a softcap c a score s = scale q k becomes c tanh(s / c), to about c 2^-22. A sink takes
/// part in the softmax of every row of its head as one more score, which has no value.
///
/// A row whose scores are all -inf is one that sees no key: zeros, and -inf. NaN in a row of Q, or
/// in a key that it sees, makes the row NaN. An infinite or NaN value of V may make rows NaN that
/// do not see it, where its key is of the sequence: it is multiplied with their zeros.
///
/// **Sequences of their own lengths**, which are read on the device. With cu_seqlens_q, q and o are
/// packed: (total_q, heads, head_dim), sequence b's queries are tokens cu_seqlens_q[b] to
/// cu_seqlens_q[b + 1] - 1, seq_q is at least the largest number of them, lse is (heads, total_q),
/// and the batch strides do not count. cu_seqlens_k is the same of k and v. With seqused_k,
/// sequence b has seqused_k[b] keys, the first of those that there are; seq_k is at least the
/// largest number. A longer sequence is cut to seq_q and seq_k, and with cu_seqlens_k to its own
/// tokens.
///
/// **Paged keys.** With a page_table, int32 (batch, seq_k / page_size rounded up), k and v are
/// (pages, page_size, kv_heads, head_dim), their batch strides from page to page, and key j of
/// sequence b is token j % page_size of page page_table[b * page_table_stride + j / page_size].
/// Only the pages that hold the sequence's keys are looked up. One that there is not ends the
/// launch with an error.
///
/// **A cache that new keys are appended to.** With k_new and v_new, sequence b has seqused_k[b]
/// keys in k and v, and seq_new new ones behind them: a kernel before attention copies those there,
/// to the pages that page_table says, and attention sees all of them. So k and v are written to.
/// New rows are (batch, seq_new, kv_heads, head_dim), or with cu_seqlens_new packed, as q with
/// cu_seqlens_q. What would lie beyond seq_k is left out. seqused_k itself stays as it is. Keys are
/// stored as they are given: a rotary embedding is the caller's, before. To a cache of e4m3, new
/// rows may be f16 or bf16 (new_dtype): x is stored as x / k_descale or x / v_descale of its batch
/// and head, rounded to nearest even and at most 448 in magnitude. A factor there is not 0.
///
/// **Multi-head latent attention** (of DeepSeek-V2, decoding). With head_dim 576 and head_dim_v
/// 512, v is k: the values are the first 512 columns of the keys. bf16; v_new is left out.
///
/// **Few queries and many keys**, as when tokens are generated one by one: the keys of a tile are
/// computed in several parts by as many CTAs, as far as `workspace` has room for their sums:
/// without one in one part. attention_workspace_bytes (selection.hpp) says how much is best.
///
/// Every machine computes head dims of 32, 64, 96, 128 and 256, equal for both, with `causal` or
/// without. An sm_100 computes head dims up to 192 and 128 of v, e4m3, windows, softcap and sinks
/// besides (docs/blackwell_attention.md). e4m3, a head_dim_v of its own, other multiples of 8 (of
/// 16 where elements have 8 bits), windows, softcap, sinks, lengths, pages and latent attention
/// need an sm_90 (docs/hopper_attention.md).
///
///     attention(machine, {.dtype = DType::f16, .q = q, .k = k, .v = v, .o = o, .batch = 2,
///                         .heads = 12, .seq_q = 128, .seq_k = 128, .head_dim = 64});
/// The range of AttentionArguments::scale, and that of a softcap: powers of two.
inline constexpr int kLeastScalePower = -126, kMostScalePower = 126;
inline constexpr int kLeastSoftcapPower = -60, kMostSoftcapPower = 12;

struct AttentionArguments {
  DType dtype = DType::bf16;  ///< of q, k and v: f16, bf16 or e4m3
  /// Of o: f16 or bf16; left out: bf16 of e4m3, else dtype, and then no other.
  std::optional<DType> out = {};
  void const* q = nullptr;
  void const* k = nullptr;
  void const* v = nullptr;
  void* o = nullptr;
  /// optional: ln(sum_j exp(scale S_ij)) as (batch, heads, seq_q), contiguous
  float* lse = nullptr;
  std::int64_t batch = 1;
  std::int64_t heads = 1;
  /// A divisor of heads: fewer for grouped-query, 1 for multi-query attention. Left out: heads.
  std::optional<std::int64_t> kv_heads = {};
  std::int64_t seq_q = 0;
  std::optional<std::int64_t> seq_k = {};  ///< left out: seq_q
  std::int64_t head_dim = 0;
  std::optional<std::int64_t> head_dim_v = {};  ///< of v and o; left out: head_dim
  /// Strides in elements. Left out: those of contiguous tensors; of v, where head_dim_v is left
  /// out, or 512 of 576, k's.
  std::optional<TokenStrides> q_stride = {};
  std::optional<TokenStrides> k_stride = {};
  std::optional<TokenStrides> v_stride = {};
  std::optional<TokenStrides> o_stride = {};
  std::optional<float> scale = {};  ///< left out: 1 / sqrt(head_dim)
  bool causal = false;
  std::optional<std::int64_t> window_left = {};  ///< keys before a query's place; left out: all
  /// keys behind it; left out: all, or with `causal` none
  std::optional<std::int64_t> window_right = {};
  float softcap = 0;                 ///< 0: scores are not capped
  float const* sink = nullptr;       ///< optional: a score for each head, below 2^127 in magnitude
  float const* q_descale = nullptr;  ///< optional, of e4m3 alone: factors, (batch, kv_heads)
  float const* k_descale = nullptr;  ///< likewise
  float const* v_descale = nullptr;  ///< likewise
  /// Of all three. Left out: contiguous. {0, 0}: each is one factor for the whole tensor.
  std::optional<DescaleStrides> descale_stride = {};
  /// Of e4m3 alone: whether sums over keys must be kept in f32, or may be in the tensor core's 13
  /// bits, which lose the mean of many values (docs/hopper_attention.md, "In fp8"). Left out: must.
  std::optional<bool> precise = {};
  Exponential exponential = Exponential::ex2_approx;

  // Sequences of their own lengths: int32, on the device.
  std::int32_t const* cu_seqlens_q = nullptr;  ///< (batch + 1), ascending from 0
  std::int32_t const* cu_seqlens_k = nullptr;  ///< likewise
  std::int32_t const* seqused_k = nullptr;     ///< (batch)
  std::int64_t total_q = 0;                    ///< tokens of q and o; with cu_seqlens_q
  std::int64_t total_k = 0;                    ///< of k and v; with cu_seqlens_k

  // Paged keys.
  std::int32_t const* page_table = nullptr;  ///< int32, on the device
  std::optional<std::int64_t> page_table_stride =
      {};                      ///< elements from sequence to sequence; left out: of a dense table
  std::int64_t pages = 0;      ///< of k and v; with page_table
  std::int64_t page_size = 0;  ///< tokens: 16, 32, 64, or a multiple of 128

  // Keys that are appended to k and v, from seqused_k[b] on, before they are read.
  void const* k_new = nullptr;
  void const* v_new = nullptr;
  std::int64_t seq_new = 0;  ///< new keys of a sequence; with cu_seqlens_new at most
  std::int32_t const* cu_seqlens_new = nullptr;  ///< (batch + 1), ascending from 0, on the device
  std::int64_t total_new = 0;                    ///< of k_new and v_new; with cu_seqlens_new
  /// Of both: dtype, or where that is e4m3, f16 or bf16; left out: dtype.
  std::optional<DType> new_dtype = {};
  std::optional<TokenStrides> k_new_stride = {};
  std::optional<TokenStrides> v_new_stride = {};

  // Keys in several parts.
  void* workspace = nullptr;  ///< device memory, aligned to 16 bytes, for one launch at a time
  std::int64_t workspace_bytes = 0;         ///< of it; 0 without one
  std::optional<std::int64_t> splits = {};  ///< parts of the most keys; left out: chosen
};

/// Extents of a tensor of tokens: of q and o, and of k and v. Packed, all tokens are one batch's;
/// paged, pages are batches.
struct TokenExtents {
  std::int64_t batch, seq;
};
TokenExtents query_extents(AttentionArguments const& arguments);
TokenExtents key_extents(AttentionArguments const& arguments);
TokenExtents new_key_extents(AttentionArguments const& arguments);

/// Whether V is the first columns of K.
constexpr bool is_latent(AttentionArguments const& a) { return a.head_dim == 576; }

/// The output type of a GEMM that does not say: f32 of tf32, bf16 of 8 and 4 bits, else that of the
/// operands.
constexpr DType default_output(DType in) {
  return in == DType::tf32 ? DType::f32 : bits(in) <= 8 ? DType::bf16 : in;
}

/// Elements from one matrix of a contiguous batch to the next: `rows` rows, `ld` apart.
constexpr std::int64_t contiguous_batch(std::int64_t rows, std::int64_t ld) {
  std::int64_t stride = 0;
  return __builtin_mul_overflow(rows, ld, &stride) ? std::numeric_limits<std::int64_t>::max()
                                                   : stride;
}

/// D = activation(alpha scale_a scale_b A B + beta C + bias) for each matrix of a batch, A of m x
/// k, B of k x n, C and D of m x n; bias is added to every row.
///
/// C and D are row-major and bias has n values, all in `out`. A's and B's major says which of their
/// indices is contiguous, and lda and ldb are the distances between consecutive values of the
/// other: of m rows of k (Major::k, the default for A) or of k rows of m (Major::mn) for A; of k
/// rows of n (Major::mn) or of n rows of k (Major::k, the layout of a linear layer's weight) for B.
///
/// f16 and bf16 are computed in every form, by whichever kernel can (docs/gemm.md): fast on sm_90
/// where TMA can address A, B, C and D, that is where their addresses and, in bytes, their leading
/// dimensions and batch strides are multiples of 16. tf32 (f32 values, of which the tensor cores
/// read the upper 19 bits) and fp8 need an sm_90, such addresses, and A and B K-major.
///
/// **Block scales** (docs/low_precision.md): with block_scale an element of A stands for itself
/// times the scale of its block of k, and so does one of B. mxf8 is e4m3 or e5m2 with kMxScale,
/// mxf6 e2m3 or e3m2, mxf4 and nvf4 are e2m1 with kMxScale and kNvScale; with kMxScale A and B may
/// differ. Elements of less than a byte lie packed, and extents and strides count elements still: k
/// is even of e2m1 both; else, where one has less than 8 bits, a multiple of 128, and rows are
/// multiples of 32 bytes. They need an sm_100. Matrices of a batch have scales of their own, one
/// behind the other, where their batch stride is not 0.
///
/// **A long K and few tiles of D**: on an sm_90 several CTAs may compute a tile together, each a
/// part of K, as far as `workspace` has room for their sums. Without one only the CTAs of a cluster
/// share K. gemm_workspace_bytes (gemm_plan.hpp) says how much is best.
struct GemmArguments {
  DType in = DType::bf16;          ///< of a: f16, bf16, tf32, e4m3, e5m2, or as block_scale
  std::optional<DType> in_b = {};  ///< of b: as a, the default; or as fp8 and scales allow
  /// of c, d and bias: f16, bf16 or f32; left out: default_output(in)
  std::optional<DType> out = {};
  Major a_major = Major::k;
  Major b_major = Major::k;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t batch = 1;
  void const* a = nullptr;
  void const* b = nullptr;
  void const* c = nullptr;     ///< read where beta is not 0; may be d (with d's strides)
  void const* bias = nullptr;  ///< optional
  void* d = nullptr;
  /// Strides in elements. Left out: those of contiguous matrices, one after the other. A batch
  /// stride of 0 means one matrix for all batches.
  std::optional<std::int64_t> lda = {};
  std::optional<std::int64_t> ldb = {};
  std::optional<std::int64_t> ldc = {};
  std::optional<std::int64_t> ldd = {};
  std::optional<std::int64_t> a_batch_stride = {};
  std::optional<std::int64_t> b_batch_stride = {};
  std::optional<std::int64_t> c_batch_stride = {};
  std::optional<std::int64_t> d_batch_stride = {};
  /// optional: a device pointer to one factor, as fp8's of a tensor. f32 multiplies alpha, scale_a
  /// and scale_b in this order: products on the way must be within its range, too.
  float const* scale_a = nullptr;
  float const* scale_b = nullptr;
  /// Of A and B alike: kMxScale or kNvScale; of block 0, the default: none
  BlockScale block_scale = {};
  /// With block_scale: device pointers to its scales, in pieces as kernel/block_scale.hpp says,
  /// aligned to 16 bytes
  void const* block_scale_a = nullptr;
  void const* block_scale_b = nullptr;
  float alpha = 1;
  float beta = 0;
  Activation activation = Activation::none;
  void* workspace = nullptr;  ///< device memory, aligned to 16 bytes, for one launch at a time
  std::int64_t workspace_bytes = 0;  ///< of it; 0 without one
};

/// The problem in a line: "bf16, 2 x 16 heads of 4, 512 queries, 512 keys, head_dim 128, causal,
/// ex2_approx exponentials".
std::string to_string(AttentionArguments const& arguments);

/// The same arguments with all set that was left out.
AttentionArguments with_defaults(AttentionArguments const& arguments);
GemmArguments with_defaults(GemmArguments const& arguments);

/// Throws argument_error, with a sentence of its own for each, where the architecture, the types,
/// an extent, the head dimension, the number of heads, a pointer, its alignment, a stride or the
/// scale is not one that a kernel computes, or 64-bit byte offsets or 32-bit tile arithmetic would
/// overflow. `compute_capability` is the machine's: 80, 90, ...
///
/// Of outputs whose elements overlap, those of nested strides are recognised: each axis must step
/// over all that the axes of smaller stride span. Strides of q, k or v that are 0 along every axis
/// of several rows are taken for a slip. An output that is one of the inputs is refused too (c
/// excepted), and one that overlaps an input or another output where neither has gaps; lse wherever
/// it lies among the others. Overlap of a tensor with gaps is the caller's to avoid, for it may lie
/// in them.
void check(AttentionArguments const& arguments, int compute_capability);
void check(GemmArguments const& arguments, int compute_capability);

/// The parameters that the kernels take. Precondition: checked arguments.
AttentionParams lower(AttentionArguments const& arguments);
GemmParams lower(GemmArguments const& arguments);

}  // namespace tegula
