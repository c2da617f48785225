#pragma once

#include <initializer_list>

#include "tegula/kernel/block_scale.hpp"
#include "tegula/kernel/gemm_sm100_config.hpp"
#include "tegula/kernel/table.hpp"
#include "tegula/numeric/dtype.hpp"

/// The configurations of scaled_gemm_sm100.
namespace tegula {

namespace detail {
/// Calls add(configuration) for each entry of scaled_gemm_sm100's table. Nothing of it was tuned:
/// no sm_100 has run it.
template <class Add> constexpr void list_scaled_gemm_sm100(Add add) {
  constexpr DType e4m3 = DType::e4m3, e5m2 = DType::e5m2, e2m1 = DType::e2m1;
  constexpr DType bf16 = DType::bf16, f32 = DType::f32;
  // Each format into both types of D, and activated.
  auto const add_all = [&](DType a, DType b, BlockScale scale) {
    ScaledGemmSm100Config c{{.a = a, .b = b, .out = bf16, .block_n = 128, .scale = scale}};
    add(c);
    c.out = f32;
    add(c);
    c.out = bf16, c.activates = true;
    add(c);
  };
  add_all(e4m3, e4m3, kMxScale);
  add_all(e5m2, e4m3, kMxScale);
  add_all(e4m3, e5m2, kMxScale);
  add_all(e2m1, e2m1, kMxScale);
  add_all(e2m1, e2m1, kNvScale);
  // Elements of 6 bits, and of 6 or 4 beside those of 8.
  constexpr DType e2m3 = DType::e2m3, e3m2 = DType::e3m2;
  struct Types {
    DType a, b;
  };
  for (auto const& [a, b] : {Types{e2m3, e2m3}, Types{e3m2, e3m2}, Types{e4m3, e2m1},
                             Types{e4m3, e2m3}, Types{e4m3, e3m2}})
    add(ScaledGemmSm100Config{{.a = a, .b = b, .out = bf16, .block_n = 128, .scale = kMxScale}});
  // Wide tiles, by one CTA and by pairs.
  for (int const ctas : {1, 2}) {
    ScaledGemmSm100Config wide{
        {.a = e4m3, .b = e4m3, .out = bf16, .block_n = 256, .ctas = ctas, .scale = kMxScale}};
    add(wide);
    wide.a = wide.b = e2m1;
    add(wide);
    wide.scale = kNvScale;
    add(wide);
  }
}

constexpr auto scaled_gemm_sm100_table() {
  return table_of<ScaledGemmSm100Config>([](auto add) { list_scaled_gemm_sm100(add); });
}
}  // namespace detail

template <ScaledGemmSm100Config C> struct ScaledGemmSm100;

/// kernel/scaled_gemm_sm100.hpp
struct ScaledGemmSm100Family {
  static constexpr char const* name = "scaled_gemm_sm100";
  using Config = ScaledGemmSm100Config;
  using Params = ScaledGemmSm100Params;
  template <Config C> using Kernel = ScaledGemmSm100<C>;
  static constexpr auto table = detail::scaled_gemm_sm100_table();

  /// Each format into bf16; elements of two types, mxf4 into f32, and an activation; e3m2, and e2m1
  /// beside e4m3. Of wide tiles
  /// mxf8 and nvf4.
  static constexpr bool is_representative(Config const& c) {
    if (c.block_n == 256) return c.scale == kNvScale || (c.a != DType::e2m1 && c.ctas == 2);
    if (bits(c.b) < 8 && !are_pairs(c.a, c.b))
      return c.b == DType::e3m2 ? c.a == c.b : bits(c.b) == 4;
    if (c.a != c.b) return c.a == DType::e5m2 && c.out == DType::f32;
    if (c.scale == kNvScale) return c.out == DType::bf16;
    return !c.activates && (c.a == DType::e2m1 || c.out == DType::bf16);
  }
};

}  // namespace tegula
