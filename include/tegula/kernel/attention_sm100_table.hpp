#pragma once

#include <initializer_list>

#include "tegula/kernel/attention_sm100_config.hpp"
#include "tegula/kernel/table.hpp"
#include "tegula/numeric/dtype.hpp"

/// The configurations of attention_sm100.
namespace tegula {

namespace detail {
/// Calls add(configuration) for each entry of attention_sm100's table. Nothing of it was tuned: no
/// sm_100 has run it. Of those that are estimated alike, the first is chosen.
template <class Add> constexpr void list_attention_sm100(Add add) {
  for (DType t : {DType::bf16, DType::f16}) {
    AttentionSm100Config const small = {.dtype = t, .head_dim = 64, .head_dim_v = 64, .stages = 4};
    AttentionSm100Config const large = {
        .dtype = t, .head_dim = 128, .head_dim_v = 128, .stages = 2};
    // Keys of 192 leave shared memory for blocks of half the size.
    AttentionSm100Config const wide = {
        .dtype = t, .head_dim = 192, .head_dim_v = 128, .block_n = 64, .stages = 2};
    for (AttentionSm100Config c : {small, large, wide}) {
      c.polynomials = 2;
      add(c);
      c.polynomials = 0;
      add(c);
      c.exponential = Exponential::polynomial;
      add(c);
      c.exponential = Exponential::ex2_approx, c.polynomials = 2, c.serving = true;
      add(c);
    }
  }
  for (DType out : {DType::bf16, DType::f16}) {
    for (int const head_dim : {64, 128, 192}) {
      AttentionSm100Config c = {.dtype = DType::e4m3, .out = out, .head_dim = head_dim};
      c.head_dim_v = head_dim == 64 ? 64 : 128;
      c.stages = head_dim > 128 ? 2 : 4;
      c.polynomials = 2;
      add(c);
      c.polynomials = 0;
      add(c);
      c.polynomials = 2, c.serving = true;
      add(c);
    }
  }
}

constexpr auto attention_sm100_table() {
  return table_of<AttentionSm100Config>([](auto add) { list_attention_sm100(add); });
}
}  // namespace detail

template <AttentionSm100Config C> struct AttentionSm100;

/// kernel/attention_sm100.hpp
struct AttentionSm100Family {
  static constexpr char const* name = "attention_sm100";
  using Config = AttentionSm100Config;
  using Params = AttentionSm100Params;
  template <Config C> using Kernel = AttentionSm100<C>;
  static constexpr auto table = detail::attention_sm100_table();

  /// bf16 at each head dim with a share of polynomials; f16 with none; e4m3 at two head dims, with
  /// and without, into either type. For serving, bf16 and e4m3 at 64, bf16 at 128.
  static constexpr bool is_representative(Config const& c) {
    if (c.serving)
      return c.dtype == DType::bf16 ? c.head_dim <= 128 : c.out == DType::bf16 && c.head_dim == 64;
    if (c.dtype == DType::bf16) return c.polynomials > 0;
    if (c.dtype == DType::e4m3)
      return c.out == DType::bf16 ? c.head_dim == 128 && c.polynomials > 0
                                  : c.head_dim == 64 && c.polynomials == 0;
    return c.head_dim == 128 && c.polynomials == 0 && c.exponential == Exponential::ex2_approx;
  }
};

}  // namespace tegula
