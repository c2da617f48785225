#include "tegula/device/arguments.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

#include "fill_in.hpp"
#include "problem.hpp"
#include "tegula/io/text.hpp"

namespace tegula {

using device::fill_in;
using device::fill_in_stride;

namespace {

/// Strides of axes of one element are a contiguous tensor's.
void fill_in_tokens(std::optional<TokenStrides>& strides, TokenExtents const& tokens,
                    std::int64_t heads, TokenStrides const& otherwise) {
  fill_in(strides, otherwise);
  if (tokens.batch == 1) strides->batch = otherwise.batch;
  if (tokens.seq == 1) strides->seq = otherwise.seq;
  if (heads == 1) strides->head = otherwise.head;
}

}  // namespace

std::string to_string(AttentionArguments const& arguments) {
  AttentionArguments const a = with_defaults(arguments);
  std::string s =
      fmt::format("{}, {} x {} heads of {}, {}, {}, head_dim {}", to_string(a.dtype), a.batch,
                  a.heads, *a.kv_heads, io::counted(a.seq_q, "query", "queries"),
                  io::counted(*a.seq_k, "key"), a.head_dim);
  if (*a.head_dim_v != a.head_dim) s += fmt::format(" and {} of v", *a.head_dim_v);
  if (a.causal) s += ", causal";
  if (a.window_left) s += fmt::format(", window_left {}", *a.window_left);
  if (a.window_right) s += fmt::format(", window_right {}", *a.window_right);
  if (a.softcap != 0) s += fmt::format(", softcap {}", a.softcap);
  if (a.sink != nullptr) s += ", with a sink";
  if (a.precise && !*a.precise) s += ", fast sums";
  if (*a.out != default_output(a.dtype)) s += fmt::format(", {} out", to_string(*a.out));
  if (a.cu_seqlens_q != nullptr)
    s += fmt::format(", {} in all", io::counted(a.total_q, "query", "queries"));
  if (a.cu_seqlens_k != nullptr) s += fmt::format(", {} in all", io::counted(a.total_k, "key"));
  if (a.seqused_k != nullptr) s += ", keys as seqused_k says";
  if (a.k_new != nullptr)
    s += a.cu_seqlens_new != nullptr
             ? fmt::format(" and {} in all", io::counted(a.total_new, "new one"))
             : fmt::format(" and {} each", io::counted(a.seq_new, "new one"));
  if (a.k_new != nullptr && *a.new_dtype != a.dtype)
    s += fmt::format(" of {}", to_string(*a.new_dtype));
  if (a.page_table != nullptr)
    s += fmt::format(", in {} of {}", io::counted(a.pages, "page"), a.page_size);
  return s + fmt::format(", {} exponentials", device::text(a.exponential));
}

TokenExtents query_extents(AttentionArguments const& a) {
  if (a.cu_seqlens_q != nullptr) return {1, a.total_q};
  return {a.batch, a.seq_q};
}
TokenExtents key_extents(AttentionArguments const& a) {
  if (a.page_table != nullptr) return {a.pages, a.page_size};
  if (a.cu_seqlens_k != nullptr) return {1, a.total_k};
  return {a.batch, a.seq_k.value_or(a.seq_q)};
}
TokenExtents new_key_extents(AttentionArguments const& a) {
  if (a.cu_seqlens_new != nullptr) return {1, a.total_new};
  return {a.batch, a.seq_new};
}

AttentionArguments with_defaults(AttentionArguments const& arguments) {
  AttentionArguments a = arguments;
  fill_in(a.kv_heads, a.heads);
  fill_in(a.seq_k, a.seq_q);
  TokenExtents const queries = query_extents(a), keys = key_extents(a);
  std::int64_t const kv_heads = *a.kv_heads;
  fill_in_tokens(a.q_stride, queries, a.heads, contiguous_tokens(queries.seq, a.heads, a.head_dim));
  fill_in_tokens(a.k_stride, keys, kv_heads, contiguous_tokens(keys.seq, kv_heads, a.head_dim));
  fill_in_tokens(a.v_stride, keys, kv_heads,
                 a.head_dim_v && *a.head_dim_v != a.head_dim && !is_latent(a)
                     ? contiguous_tokens(keys.seq, kv_heads, *a.head_dim_v)
                     : *a.k_stride);
  fill_in(a.head_dim_v, a.head_dim);
  fill_in_tokens(a.o_stride, queries, a.heads,
                 contiguous_tokens(queries.seq, a.heads, *a.head_dim_v));
  TokenExtents const new_keys = new_key_extents(a);
  fill_in(a.new_dtype, a.dtype);
  fill_in_tokens(a.k_new_stride, new_keys, kv_heads,
                 contiguous_tokens(new_keys.seq, kv_heads, a.head_dim));
  fill_in_tokens(a.v_new_stride, new_keys, kv_heads,
                 contiguous_tokens(new_keys.seq, kv_heads, *a.head_dim_v));
  fill_in_stride(a.page_table_stride, a.batch,
                 a.page_size < 1 ? 0 : (*a.seq_k - 1) / a.page_size + 1);
  fill_in(a.scale, 1.0f / std::sqrt(static_cast<float>(a.head_dim)));
  fill_in(a.out, default_output(a.dtype));
  fill_in(a.descale_stride, DescaleStrides{kv_heads, 1});
  if (a.batch == 1) a.descale_stride->batch = 0;
  if (kv_heads == 1) a.descale_stride->head = 0;
  if (a.dtype == DType::e4m3) fill_in(a.precise, true);
  return a;
}

GemmArguments with_defaults(GemmArguments const& arguments) {
  GemmArguments g = arguments;
  bool const a_k = g.a_major == Major::k, b_k = g.b_major == Major::k;
  fill_in(g.in_b, g.in);
  if (g.block_scale.block == 0) g.block_scale = {};
  fill_in(g.out, default_output(g.in));
  std::int64_t const rows_a = a_k ? g.m : g.k, rows_b = b_k ? g.n : g.k;
  std::int64_t const row_a = a_k ? g.k : g.m, row_b = b_k ? g.k : g.n;
  fill_in_stride(g.lda, rows_a, row_a);
  fill_in_stride(g.ldb, rows_b, row_b);
  fill_in_stride(g.ldc, g.m, g.n);
  fill_in_stride(g.ldd, g.m, g.n);
  fill_in_stride(g.a_batch_stride, g.batch, contiguous_batch(rows_a, *g.lda));
  fill_in_stride(g.b_batch_stride, g.batch, contiguous_batch(rows_b, *g.ldb));
  fill_in_stride(g.c_batch_stride, g.batch, contiguous_batch(g.m, *g.ldc));
  fill_in_stride(g.d_batch_stride, g.batch, contiguous_batch(g.m, *g.ldd));
  return g;
}

}  // namespace tegula
