#pragma once

#include <initializer_list>

#include "tegula/kernel/grouped_gemm_sm90_config.hpp"
#include "tegula/kernel/table.hpp"
#include "tegula/numeric/dtype.hpp"

/// The configurations of grouped_gemm_sm90.
namespace tegula {

namespace detail {
/// The tiles of grouped_gemm_sm90 with scales: the large one, which reads the fewest bytes from L2
/// for its products, ...
inline constexpr GroupedGemmSm90Config scaled_large_tile = {
    .block_m = 256, .block_n = 128, .cluster_n = 2};
inline constexpr GroupedGemmSm90Config scaled_tile = {.block_m = 128, .block_n = 128};
/// ... widths beside it that may cut N into fewer waves, and tiles of few rows: what is not
/// multiplied twice is read soonest by many narrow ones.
inline constexpr GroupedGemmSm90Config scaled_tiles[] = {
    scaled_large_tile,
    {.block_m = 128, .block_n = 192},
    {.block_m = 128, .block_n = 160},
    {.block_m = 128, .block_n = 144},
    {.block_m = 128, .block_n = 128, .cluster_n = 2},
    scaled_tile,
    {.block_m = 128, .block_n = 96},
    {.block_m = 128, .block_n = 64},
    {.block_m = 64, .block_n = 128},
    {.block_m = 64, .block_n = 96},
    {.block_m = 64, .block_n = 64},
    {.block_m = 64, .block_n = 32},
    {.block_m = 128, .block_n = 192, .cluster_n = 2},
    {.block_m = 128, .block_n = 192, .cluster_m = 2},
    {.block_m = 64, .block_n = 128, .cluster_m = 2},
};
/// ... and for problems of few tiles: two CTAs an SM, and shares of K, so that several walk a long
/// K at a time. Each was the fastest of the table at a problem of DeepGEMM's list (H200).
inline constexpr GroupedGemmSm90Config few_tiles[] = {
    {.block_m = 64, .block_n = 64, .min_ctas_per_sm = 2},
    {.block_m = 64, .block_n = 32, .min_ctas_per_sm = 2},
    {.block_m = 64, .block_n = 64, .split_k = 2},
    {.block_m = 64, .block_n = 64, .split_k = 2, .min_ctas_per_sm = 2},
    {.block_m = 64, .block_n = 64, .split_k = 4, .min_ctas_per_sm = 2},
    {.block_m = 64, .block_n = 64, .split_k = 8, .min_ctas_per_sm = 2},
    {.block_m = 128, .block_n = 128, .split_k = 2},
};
/// Those of 16-bit operands.
inline constexpr GroupedGemmSm90Config grouped_tiles[] = {
    {.block_m = 128, .block_n = 256, .cluster_n = 2},
    {.block_m = 128, .block_n = 128},
    {.block_m = 64, .block_n = 64},
};

constexpr GroupedGemmSm90Config typed(GroupedGemmSm90Config tile, DType a, DType b, DType out,
                                      Scales scales) {
  tile.a = a, tile.b = b, tile.out = out, tile.scales = scales;
  return tile;
}

/// Calls add(configuration) for each entry of grouped_gemm_sm90's table.
template <class Add> constexpr void list_grouped_gemm_sm90(Add add) {
  constexpr DType e4m3 = DType::e4m3, e5m2 = DType::e5m2, bf16 = DType::bf16, f32 = DType::f32;
  constexpr Scales blocks = Scales::rows_by_blocks, rows = Scales::rows_by_rows;
  for (GroupedGemmSm90Config tile : scaled_tiles) add(typed(tile, e4m3, e4m3, bf16, blocks));
  for (GroupedGemmSm90Config tile : {scaled_large_tile, scaled_tile})
    add(typed(tile, e4m3, e4m3, f32, blocks));
  for (GroupedGemmSm90Config tile : few_tiles) add(typed(tile, e4m3, e4m3, bf16, blocks));
  for (DType out : {bf16, f32}) add(typed(scaled_tile, e5m2, e4m3, out, blocks));
  for (DType out : {f32, bf16}) add(typed(scaled_tile, e4m3, e4m3, out, rows));
  add(typed({.block_m = 128, .block_n = 160}, e4m3, e4m3, f32, rows));  // groups of k
  add(typed(scaled_tile, e5m2, e4m3, f32, rows));
  for (GroupedGemmSm90Config tile : grouped_tiles) {
    add(typed(tile, bf16, bf16, bf16, Scales::none));
    add(typed(tile, DType::f16, DType::f16, DType::f16, Scales::none));
  }
  for (DType in : {bf16, DType::f16}) add(typed(grouped_tiles[1], in, in, f32, Scales::none));
  add(typed(grouped_tiles[0], bf16, bf16, f32, Scales::none));
}

constexpr auto grouped_gemm_sm90_table() {
  return table_of<GroupedGemmSm90Config>([](auto add) { list_grouped_gemm_sm90(add); });
}
}  // namespace detail

template <GroupedGemmSm90Config C> struct GroupedGemmSm90;

/// kernel/grouped_gemm_sm90.hpp
struct GroupedGemmSm90Family {
  static constexpr char const* name = "grouped_gemm_sm90";
  using Config = GroupedGemmSm90Config;
  using Params = GroupedGemmSm90Params;
  template <Config C> using Kernel = GroupedGemmSm90<C>;
  static constexpr auto table = detail::grouped_gemm_sm90_table();

  /// e4m3 with scales in every tile, two of those in clusters and two of those that share K, and of
  /// every kind into f32; bf16 with and without a cluster, and into f32; one of every other type.
  static constexpr bool is_representative(Config const& c) {
    bool const alone = c.cluster_m == 1 && c.cluster_n == 1;
    bool const tile = c.block_m == 128 && c.block_n == 128 && alone;
    if (c.a == DType::e5m2) return c.scales == Scales::rows_by_blocks && c.out == DType::bf16;
    if (c.split_k > 1 || c.min_ctas_per_sm > 1) return c.split_k == 4 || c.block_m == 128;
    if (c.scales == Scales::rows_by_rows) return c.out == DType::f32;
    if (c.scales == Scales::rows_by_blocks)
      return c.out == DType::bf16
                 ? alone || c.block_m == 256 || (c.block_n == 192 && c.cluster_m == 2)
                 : tile;
    if (c.a == DType::f16) return c.block_m == 64;
    return c.out == DType::bf16 || tile;
  }
};

}  // namespace tegula
