#pragma once

#include <initializer_list>

#include "tegula/kernel/gemm_sm100_config.hpp"
#include "tegula/kernel/table.hpp"
#include "tegula/numeric/dtype.hpp"

/// The configurations of gemm_sm100.
namespace tegula {

namespace detail {
/// Calls add(configuration) for each entry of gemm_sm100's table. Nothing of it was tuned: no
/// sm_100 has run it.
template <class Add> constexpr void list_gemm_sm100(Add add) {
  constexpr DType bf16 = DType::bf16, f16 = DType::f16, f32 = DType::f32;
  auto const typed = [](DType a, DType b, DType out, int n) {
    return GemmSm100Config{.a = a, .b = b, .out = out, .block_n = n};
  };
  for (DType t : {bf16, f16}) {
    for (int n : {256, 128, 64}) add(typed(t, t, t, n));
    add(typed(t, t, f32, 128));
  }
  for (Majors majors :
       {Majors{Major::k, Major::mn}, {Major::mn, Major::k}, {Major::mn, Major::mn}}) {
    GemmSm100Config c = typed(bf16, bf16, bf16, 128);
    c.a_major = majors.a, c.b_major = majors.b;
    add(c);
  }
  GemmSm100Config activating = typed(bf16, bf16, bf16, 128);
  activating.activates = true;
  add(activating);
  add(typed(DType::tf32, DType::tf32, f32, 128));
  add(typed(DType::e4m3, DType::e4m3, bf16, 256));
  for (DType b : {DType::e4m3, DType::e5m2}) add(typed(DType::e4m3, b, bf16, 128));
  add(typed(DType::e5m2, DType::e4m3, bf16, 128));
  auto const pair = [](GemmSm100Config c) {
    c.ctas = 2;
    return c;
  };
  for (DType t : {bf16, f16}) add(pair(typed(t, t, t, 256)));
  add(pair(typed(DType::e4m3, DType::e4m3, bf16, 256)));
  GemmSm100Config launched = typed(bf16, bf16, bf16, 128);
  launched.launched = true;
  add(launched);
  auto const of_mn = [](GemmSm100Config c) {
    c.a_major = c.b_major = Major::mn;
    return c;
  };
  add(pair(of_mn(launched)));
  auto const in_cluster = [](int tiles_m, int tiles_n, GemmSm100Config c) {
    c.cluster_tiles_m = tiles_m, c.cluster_tiles_n = tiles_n;
    return c;
  };
  add(in_cluster(1, 2, launched));
  add(in_cluster(2, 1, pair(typed(bf16, bf16, bf16, 256))));
  add(in_cluster(1, 2, pair(launched)));
  add(in_cluster(1, 2, pair(of_mn(launched))));
  add(in_cluster(2, 2, pair(typed(DType::e4m3, DType::e4m3, bf16, 256))));
}

constexpr auto gemm_sm100_table() {
  return table_of<GemmSm100Config>([](auto add) { list_gemm_sm100(add); });
}
}  // namespace detail

template <GemmSm100Config C> struct GemmSm100;

/// kernel/gemm_sm100.hpp
struct GemmSm100Family {
  static constexpr char const* name = "gemm_sm100";
  using Config = GemmSm100Config;
  using Params = GemmSm90Params;
  template <Config C> using Kernel = GemmSm100<C>;
  static constexpr auto table = detail::gemm_sm100_table();

  /// bf16 at every tile and of all majors, by one CTA and by pairs, dealt in both ways, in
  /// clusters; one or two of every other type.
  static constexpr bool is_representative(Config const& c) {
    if (c.a == DType::f16) return c.block_n == 128 && c.out == DType::f16;
    return c.cluster_tiles_n == 1 || c.a_major == Major::k;
  }
};

}  // namespace tegula
