#pragma once

#include <initializer_list>

#include "tegula/kernel/attention_config.hpp"
#include "tegula/kernel/table.hpp"
#include "tegula/layout/refuse.hpp"
#include "tegula/numeric/dtype.hpp"

/// The configurations of attention_sm80.
namespace tegula {

/// The tile shapes for a head dim, tuned for speed on an H100. They fit an A100 too (163 KB of
/// shared memory), but for head dim 256, which has a second shape for devices with less shared
/// memory than an H100: `small`.
constexpr AttentionConfig tuned_attention_sm80(DType dtype, int head_dim, bool causal,
                                               Exponential exponential, bool small = false) {
  AttentionConfig c{
      .dtype = dtype, .head_dim = head_dim, .causal = causal, .exponential = exponential};
  bool const polynomial = exponential == Exponential::polynomial;
  switch (head_dim) {
    case 32:
      c.min_ctas_per_sm = 3;
      break;
    case 64:
      c.block_n = 128, c.min_ctas_per_sm = 2;
      break;
    case 96:
      c.min_ctas_per_sm = 2;
      break;
    case 128:
      // At the limit of 255 registers: the polynomial's temporaries leave none for scores of 64
      // keys, and with the causal mask fewer fragments are loaded ahead. The resource check of the
      // CUDA build holds these to no spills.
      c.block_n = polynomial ? 32 : 64, c.fragment_pairs = causal ? 2 : 4, c.min_ctas_per_sm = 2;
      break;
    case 256:
      c.block_n = small ? 32 : 64, c.warps = 8;
      break;
    default:
      refuse("tuned_attention_sm80", "head_dim must be 32, 64, 96, 128 or 256", head_dim);
  }
  return c;
}

inline constexpr int attention_head_dims[] = {32, 64, 96, 128, 256};

namespace detail {
constexpr auto attention_sm80_table() {
  Table<AttentionConfig, (5 + 1) * 2 * 2 * 2> table;
  int i = 0;
  for (Exponential e : {Exponential::ex2_approx, Exponential::polynomial}) {
    for (DType t : {DType::bf16, DType::f16}) {
      for (bool causal : {false, true}) {
        for (int d : attention_head_dims) table.values[i++] = tuned_attention_sm80(t, d, causal, e);
        table.values[i++] = tuned_attention_sm80(t, 256, causal, e, /*small=*/true);
      }
    }
  }
  return table;
}
}  // namespace detail

template <AttentionConfig C> struct AttentionSm80;

/// kernel/attention_sm80.hpp
struct AttentionSm80Family {
  static constexpr char const* name = "attention_sm80";
  using Config = AttentionConfig;
  using Params = AttentionParams;
  template <Config C> using Kernel = AttentionSm80<C>;
  static constexpr auto table = detail::attention_sm80_table();

  /// bf16 at every head dimension; the mask, and both exponentials where registers are scarcest;
  /// f16 at the smallest.
  static constexpr bool is_representative(Config const& c) {
    bool const hardware = c.exponential == Exponential::ex2_approx, d64 = c.head_dim == 64;
    if (c.dtype == DType::f16) return hardware && (d64 || (c.head_dim == 32 && !c.causal));
    return c.causal ? c.head_dim == 128 || (d64 && hardware) : hardware;
  }
};

}  // namespace tegula
