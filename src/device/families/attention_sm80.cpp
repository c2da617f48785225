// What attention_sm80 is launched with.

#include "attention_sm80.hpp"

#include <algorithm>

namespace tegula {

int attention_heads_per_l2_group(AttentionArguments const& arguments) {
  AttentionArguments const a = with_defaults(arguments);
  if (!a.causal) return 1;
  // Tuned for speed on an H100, over 512 to 16384 keys and head dims 64 and 128: about a tenth
  // faster than one head at a time from 4096 keys on, less below. Larger groups than its L2 cache
  // of 50 MB still gain, for at any time their CTAs read only part of the keys.
  constexpr std::int64_t served = std::int64_t{64} << 20;
  std::int64_t const keys_and_values = 2 * *a.seq_k * a.head_dim * (bits(a.dtype) / 8);
  std::int64_t const heads = served / keys_and_values * (a.heads / *a.kv_heads);
  return static_cast<int>(std::clamp<std::int64_t>(heads, 1, a.batch * a.heads));
}

AttentionParams lower(AttentionArguments const& arguments) {
  AttentionArguments const a = with_defaults(arguments);
  return {.q = a.q,
          .k = a.k,
          .v = a.v,
          .o = a.o,
          .lse = a.lse,
          .batch = static_cast<int>(a.batch),
          .heads = static_cast<int>(a.heads),
          .kv_heads = static_cast<int>(*a.kv_heads),
          .seq_q = static_cast<int>(a.seq_q),
          .seq_k = static_cast<int>(*a.seq_k),
          .q_stride = *a.q_stride,
          .k_stride = *a.k_stride,
          .v_stride = *a.v_stride,
          .o_stride = *a.o_stride,
          .scale = *a.scale,
          .heads_per_l2_group = attention_heads_per_l2_group(a)};
}

}  // namespace tegula
