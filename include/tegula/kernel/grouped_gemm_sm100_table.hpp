#pragma once

#include <initializer_list>

#include "tegula/kernel/block_scale.hpp"
#include "tegula/kernel/grouped_gemm_sm100_config.hpp"
#include "tegula/kernel/table.hpp"
#include "tegula/numeric/dtype.hpp"

/// The configurations of grouped_gemm_sm100.
namespace tegula {

namespace detail {
/// Calls add(configuration) for each entry of grouped_gemm_sm100's table. Nothing of it was tuned:
/// no sm_100 has run it.
template <class Add> constexpr void list_grouped_gemm_sm100(Add add) {
  constexpr DType bf16 = DType::bf16, f16 = DType::f16, f32 = DType::f32;
  constexpr DType e4m3 = DType::e4m3, e5m2 = DType::e5m2;
  auto const add_typed = [&](DType a, DType b, DType out, int n, int ctas = 1) {
    add(GroupedGemmSm100Config{
        {.a = a, .b = b, .out = out, .block_n = n, .ctas = ctas, .grouped = true}});
  };
  for (DType t : {bf16, f16}) {
    for (int n : {256, 128, 64}) add_typed(t, t, t, n);
    add_typed(t, t, f32, 128);
    add_typed(t, t, t, 256, 2);
  }
  for (int n : {256, 128, 64}) add_typed(e4m3, e4m3, bf16, n);
  add_typed(e4m3, e4m3, f32, 128);
  add_typed(e4m3, e4m3, bf16, 256, 2);
  for (DType t : {bf16, f16, e4m3}) add_typed(t, t, f32, 128, 2);
  add_typed(e5m2, e4m3, bf16, 128);
  add_typed(e4m3, e5m2, bf16, 128);
  // With block scales.
  auto const add_scaled = [&](DType a, DType b, DType out, BlockScale scale, int n, int ctas = 1) {
    add(GroupedGemmSm100Config{
        {.a = a, .b = b, .out = out, .block_n = n, .ctas = ctas, .scale = scale, .grouped = true}});
  };
  constexpr DType e2m1 = DType::e2m1;
  add_scaled(e4m3, e4m3, bf16, kMxScale, 128);
  add_scaled(e4m3, e4m3, f32, kMxScale, 128);
  add_scaled(e4m3, e4m3, bf16, kMxScale, 256, 2);
  add_scaled(e4m3, e4m3, f32, kMxScale, 128, 2);
  add_scaled(e5m2, e4m3, bf16, kMxScale, 128);
  for (BlockScale const& scale : {kMxScale, kNvScale}) {
    add_scaled(e2m1, e2m1, bf16, scale, 128);
    add_scaled(e2m1, e2m1, f32, scale, 128);
  }
  add_scaled(e2m1, e2m1, bf16, kNvScale, 256, 2);
}

constexpr auto grouped_gemm_sm100_table() {
  return table_of<GroupedGemmSm100Config>([](auto add) { list_grouped_gemm_sm100(add); });
}
}  // namespace detail

template <GroupedGemmSm100Config C> struct GroupedGemmSm100;

/// kernel/grouped_gemm_sm100.hpp
struct GroupedGemmSm100Family {
  static constexpr char const* name = "grouped_gemm_sm100";
  using Config = GroupedGemmSm100Config;
  using Params = GroupedGemmSm100Params;
  template <Config C> using Kernel = GroupedGemmSm100<C>;
  static constexpr auto table = detail::grouped_gemm_sm100_table();

  /// bf16 in every form; of f16 the narrowest tile; e4m3 into either type and by pairs, and e5m2;
  /// block scales but for mixed types.
  static constexpr bool is_representative(Config const& c) {
    if (c.a == DType::bf16) return true;
    if (c.a == DType::f16) return c.block_n == 64;
    if (c.scale.block != 0) return c.a == c.b;
    return c.b == DType::e4m3 && (c.block_n == 128 || c.ctas == 2);
  }
};

}  // namespace tegula
