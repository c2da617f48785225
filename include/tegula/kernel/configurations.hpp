#pragma once

#include <initializer_list>
#include <iterator>

#include "tegula/kernel/append_keys_config.hpp"
#include "tegula/kernel/attention_config.hpp"
#include "tegula/kernel/attention_sm100_config.hpp"
#include "tegula/kernel/attention_sm90_config.hpp"
#include "tegula/kernel/family_list.hpp"
#include "tegula/kernel/gemm_config.hpp"
#include "tegula/kernel/gemm_inputs_config.hpp"
#include "tegula/kernel/gemm_sm100_config.hpp"
#include "tegula/kernel/gemm_sm90_config.hpp"
#include "tegula/kernel/grouped_gemm_sm90_config.hpp"
#include "tegula/layout/refuse.hpp"

/// Every family of kernels, with its configurations that are built, as tables of values. A kernel
/// is named by its index into a table, because a __global__ template cannot take the configuration
/// itself: nvcc's host stub cannot print a value of class type.
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
template <class Config, int N> struct Table {
  static constexpr int count = N;
  Config values[N] = {};
  constexpr Config const& operator[](int i) const { return values[i]; }
  constexpr Config const* begin() const { return values; }
  constexpr Config const* end() const { return values + N; }
};

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

/// The tiles of attention_sm90, apart from their types, tuned for speed on an H200
/// (docs/hopper_attention.md).
inline constexpr AttentionSm90Config attention_sm90_tiles[] = {
    {.head_dim = 64, .head_dim_v = 64, .block_n = 128, .consumers = 3},
    {.head_dim = 96, .head_dim_v = 96, .block_n = 128},
    {.head_dim = 128, .head_dim_v = 128, .block_n = 128},
    {.head_dim = 192, .head_dim_v = 128, .block_n = 128},
    {.head_dim = 192, .head_dim_v = 192, .block_n = 112},
    {.head_dim = 256, .head_dim_v = 256, .block_n = 80},
};

/// The tile with registers to spare for the polynomial's temporaries: fewer scores a thread where
/// the head dim is large. The resource check of the CUDA build holds these to no spills.
constexpr AttentionSm90Config with_polynomial(AttentionSm90Config tile) {
  if (tile.head_dim == 256) tile.block_n = 48;
  return tile;
}
/// It takes longer than the hardware's exponentials, and is asked for by name: two tiles serve it.
constexpr bool has_polynomial(AttentionSm90Config const& tile) {
  return tile.head_dim == tile.head_dim_v && (tile.head_dim == 128 || tile.head_dim == 256);
}

/// Those of e4m3: that add up blocks of keys in the tensor core, and, with as many keys in a block
/// as spill no registers, in f32. Three consumers at head dim 64 spill from blocks of 128 keys on.
inline constexpr AttentionSm90Config attention_sm90_fp8_tiles[] = {
    {.head_dim = 64, .head_dim_v = 64, .block_n = 160},
    {.head_dim = 128, .head_dim_v = 128, .block_n = 224},
    {.head_dim = 256, .head_dim_v = 256, .block_n = 96},
    {.head_dim = 64, .head_dim_v = 64, .block_n = 160, .promoted = 64},
    {.head_dim = 128, .head_dim_v = 128, .block_n = 160, .promoted = 64},
    {.head_dim = 192, .head_dim_v = 192, .block_n = 96, .promoted = 64},
    {.head_dim = 256, .head_dim_v = 256, .block_n = 64, .promoted = 64},
};

/// Those for serving: one consumer where a tile has few rows, for which K and V stream through as
/// many stages as there is memory for, and two where it has many. Two have fewer scores a thread
/// from head dim 128 on: with more, they and what a tile is do not fit in the registers.
inline constexpr AttentionSm90Config attention_sm90_serving_tiles[] = {
    {.head_dim = 64, .head_dim_v = 64, .block_n = 128, .consumers = 1, .stages = 6},
    {.head_dim = 128, .head_dim_v = 128, .block_n = 128, .consumers = 1, .stages = 3},
    {.head_dim = 256, .head_dim_v = 256, .block_n = 64, .consumers = 1, .stages = 2},
    {.head_dim = 64, .head_dim_v = 64, .block_n = 128},
    {.head_dim = 128, .head_dim_v = 128, .block_n = 64, .stages = 3},
    {.head_dim = 256, .head_dim_v = 256, .block_n = 32, .stages = 4},
};

/// The same of e4m3, with blocks of keys added up in f32. Each stage has V twice.
inline constexpr AttentionSm90Config attention_sm90_fp8_serving_tiles[] = {
    {.head_dim = 128,
     .head_dim_v = 128,
     .block_n = 128,
     .consumers = 1,
     .stages = 4,
     .promoted = 64},
    {.head_dim = 256,
     .head_dim_v = 256,
     .block_n = 64,
     .consumers = 1,
     .stages = 4,
     .promoted = 64},
    {.head_dim = 128, .head_dim_v = 128, .block_n = 128, .stages = 3, .promoted = 64},
    {.head_dim = 256, .head_dim_v = 256, .block_n = 64, .stages = 3, .promoted = 64},
};

/// That of multi-head latent attention, for decoding.
inline constexpr AttentionSm90Config attention_sm90_latent = {.dtype = DType::bf16,
                                                              .head_dim = 576,
                                                              .head_dim_v = 512,
                                                              .block_n = 64,
                                                              .consumers = 1,
                                                              .serving = true,
                                                              .latent = true};

constexpr auto attention_sm90_table() {
  constexpr int tiles = static_cast<int>(std::size(attention_sm90_tiles)),
                fp8_tiles = static_cast<int>(std::size(attention_sm90_fp8_tiles)),
                serving_tiles = static_cast<int>(std::size(attention_sm90_serving_tiles)),
                fp8_serving_tiles = static_cast<int>(std::size(attention_sm90_fp8_serving_tiles)),
                polynomial_tiles = [] {
                  int count = 0;
                  for (AttentionSm90Config const& tile : attention_sm90_tiles)
                    count += has_polynomial(tile) ? 1 : 0;
                  return count;
                }();
  Table<AttentionSm90Config,
        (tiles + polynomial_tiles + serving_tiles) * 2 + fp8_tiles + fp8_serving_tiles + 1>
      table;
  int i = 0;
  for (Exponential e : {Exponential::ex2_approx, Exponential::polynomial}) {
    for (DType t : {DType::bf16, DType::f16}) {
      for (AttentionSm90Config tile : attention_sm90_tiles) {
        bool const polynomial = e == Exponential::polynomial;
        if (polynomial && !has_polynomial(tile)) continue;
        tile.dtype = t, tile.exponential = e;
        table.values[i++] = polynomial ? with_polynomial(tile) : tile;
      }
    }
  }
  for (AttentionSm90Config tile : attention_sm90_fp8_tiles) {
    tile.dtype = DType::e4m3;
    table.values[i++] = tile;
  }
  for (DType t : {DType::bf16, DType::f16}) {
    for (AttentionSm90Config tile : attention_sm90_serving_tiles) {
      tile.dtype = t, tile.serving = true;
      table.values[i++] = tile;
    }
  }
  for (AttentionSm90Config tile : attention_sm90_fp8_serving_tiles) {
    tile.dtype = DType::e4m3, tile.serving = true;
    table.values[i++] = tile;
  }
  table.values[i++] = attention_sm90_latent;
  return table;
}

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
    }
  }
}

constexpr auto attention_sm100_table() {
  constexpr int count = [] {
    int n = 0;
    list_attention_sm100([&](AttentionSm100Config const&) { ++n; });
    return n;
  }();
  Table<AttentionSm100Config, count> table;
  int i = 0;
  list_attention_sm100([&](AttentionSm100Config const& c) { table.values[i++] = c; });
  return table;
}

constexpr auto gemm_sm80_table() {
  Table<GemmConfig, 2 * 3 * 4 + 2 * 3 * 4 + 2 * 4> table;
  int i = 0;
  for (int vector_bytes : {16, 2}) {
    for (DType in : {DType::bf16, DType::f16}) {
      for (DType out : {DType::bf16, DType::f16, DType::f32}) {
        for (Major a : {Major::k, Major::mn}) {
          for (Major b : {Major::k, Major::mn}) {
            table.values[i++] = {
                .in = in, .out = out, .a_major = a, .b_major = b, .vector_bytes = vector_bytes};
          }
        }
      }
    }
  }
  // For large problems: the largest tile whose accumulators a thread can hold, for it reads the
  // least from L2.
  for (DType t : {DType::bf16, DType::f16}) {
    for (Major a : {Major::k, Major::mn}) {
      for (Major b : {Major::k, Major::mn}) {
        table.values[i++] = {.in = t,
                             .out = t,
                             .a_major = a,
                             .b_major = b,
                             .block_m = 128,
                             .block_n = 256,
                             .block_k = 64,
                             .stages = 3,
                             .warps_m = 2,
                             .warps_n = 4};
      }
    }
  }
  return table;
}

/// The tiles of gemm_sm90, apart from their types. Tuned for speed on an H200: which are here
/// decides how fast a problem is computed, not whether. Each was the fastest of some 110 at enough
/// of 300 random problems to be missed (docs/hopper_gemm.md).
inline constexpr GemmSm90Config large_tile = {
    .block_m = 128, .block_n = 256, .cluster_m = 2, .narrow_n = 240};
inline constexpr GemmSm90Config small_tile = {
    .block_m = 64, .block_n = 128, .schedule = Schedule::basic};
inline constexpr GemmSm90Config medium_tile = {.block_m = 128, .block_n = 128};
/// Of 16-bit operands: for problems that fill the device several times over, ...
inline constexpr GemmSm90Config full_tiles[] = {
    {.block_m = 256, .block_n = 128, .schedule = Schedule::cooperative, .cluster_n = 2},
    {.block_m = 128, .block_n = 224, .schedule = Schedule::cooperative, .cluster_m = 2},
    {.block_m = 128, .block_n = 192, .schedule = Schedule::pingpong, .cluster_m = 2},
    {.block_m = 128,
     .block_n = 176,
     .schedule = Schedule::pingpong,
     .cluster_m = 2,
     .narrow_n = 160},
    {.block_m = 128,
     .block_n = 160,
     .schedule = Schedule::pingpong,
     .cluster_m = 2,
     .narrow_n = 144},
    {.block_m = 128, .block_n = 128, .schedule = Schedule::pingpong, .cluster_m = 2},
    {.block_m = 128, .block_n = 256, .schedule = Schedule::cooperative, .narrow_n = 240},
    {.block_m = 128,
     .block_n = 160,
     .schedule = Schedule::pingpong,
     .cluster_m = 2,
     .transposed = true},
    {.block_m = 256,
     .block_n = 112,
     .schedule = Schedule::cooperative,
     .cluster_m = 2,
     .transposed = true},
};
/// ... for those of a wave or two, whose tiles differ so that one of them leaves few SMs idle, ...
inline constexpr GemmSm90Config middle_tiles[] = {
    {.block_m = 128, .block_n = 208, .schedule = Schedule::cooperative},
    {.block_m = 128, .block_n = 176, .schedule = Schedule::cooperative},
    {.block_m = 128, .block_n = 160, .schedule = Schedule::cooperative},
    {.block_m = 128, .block_n = 144, .schedule = Schedule::cooperative},
    {.block_m = 128, .block_n = 96, .schedule = Schedule::cooperative},
    {.block_m = 128,
     .block_n = 128,
     .schedule = Schedule::cooperative,
     .cluster_m = 2,
     .cluster_n = 2},
    {.block_m = 64, .block_n = 64, .schedule = Schedule::basic},
    {.block_m = 64, .block_n = 96, .schedule = Schedule::basic},
    {.block_m = 64, .block_n = 192, .schedule = Schedule::basic},
    {.block_m = 64, .block_n = 256, .schedule = Schedule::basic},
    {.block_m = 64, .block_n = 64, .schedule = Schedule::basic, .cluster_m = 2},
    {.block_m = 64, .block_n = 128, .schedule = Schedule::basic, .cluster_n = 2},
    {.block_m = 64, .block_n = 128, .schedule = Schedule::basic, .split_k = 4},
    {.block_m = 128,
     .block_n = 80,
     .schedule = Schedule::cooperative,
     .cluster_m = 2,
     .cluster_n = 2,
     .transposed = true},
};
/// ... and for few rows, which a transposed D takes for columns: weights are what such problems
/// read, and more CTAs at a time read faster.
inline constexpr GemmSm90Config few_rows_tiles[] = {
    {.block_m = 64, .block_n = 8, .schedule = Schedule::basic, .transposed = true},
    {.block_m = 64, .block_n = 16, .schedule = Schedule::basic, .transposed = true},
    {.block_m = 64, .block_n = 32, .schedule = Schedule::basic, .transposed = true},
    {.block_m = 128, .block_n = 32, .schedule = Schedule::basic, .transposed = true},
    {.block_m = 64,
     .block_n = 16,
     .schedule = Schedule::basic,
     .split_k = 2,
     .min_ctas_per_sm = 2,
     .transposed = true},
    {.block_m = 64, .block_n = 32, .schedule = Schedule::basic, .split_k = 4, .transposed = true},
    {.block_m = 64,
     .block_n = 32,
     .schedule = Schedule::basic,
     .split_k = 4,
     .min_ctas_per_sm = 2,
     .transposed = true},
    {.block_m = 64, .block_n = 64, .schedule = Schedule::basic, .split_k = 8, .transposed = true},
};
/// Those of 8-bit operands.
inline constexpr GemmSm90Config fp8_tiles[] = {
    {.block_m = 128, .block_n = 192, .schedule = Schedule::pingpong, .cluster_m = 2},
    {.block_m = 128,
     .block_n = 176,
     .schedule = Schedule::pingpong,
     .cluster_m = 2,
     .narrow_n = 160},
    {.block_m = 128,
     .block_n = 160,
     .schedule = Schedule::pingpong,
     .cluster_m = 2,
     .narrow_n = 144},
    {.block_m = 128, .block_n = 128, .schedule = Schedule::pingpong, .cluster_m = 2},
    {.block_m = 64, .block_n = 256, .schedule = Schedule::pingpong, .cluster_m = 2},
    {.block_m = 128, .block_n = 256, .schedule = Schedule::cooperative, .narrow_n = 240},
    {.block_m = 128, .block_n = 224, .schedule = Schedule::cooperative, .cluster_m = 2},
    {.block_m = 128,
     .block_n = 160,
     .schedule = Schedule::pingpong,
     .cluster_m = 2,
     .transposed = true},
    {.block_m = 128, .block_n = 208, .schedule = Schedule::cooperative},
    {.block_m = 128, .block_n = 96, .schedule = Schedule::cooperative},
    {.block_m = 128,
     .block_n = 160,
     .schedule = Schedule::cooperative,
     .cluster_m = 2,
     .cluster_n = 2},
    {.block_m = 128,
     .block_n = 112,
     .schedule = Schedule::cooperative,
     .cluster_m = 2,
     .cluster_n = 2,
     .transposed = true},
    {.block_m = 64, .block_n = 64, .schedule = Schedule::basic},
    {.block_m = 64, .block_n = 64, .schedule = Schedule::basic, .min_ctas_per_sm = 2},
    {.block_m = 64, .block_n = 96, .schedule = Schedule::basic},
    {.block_m = 64, .block_n = 256, .schedule = Schedule::basic},
    {.block_m = 64, .block_n = 128, .schedule = Schedule::basic, .cluster_m = 2, .cluster_n = 2},
    {.block_m = 64, .block_n = 64, .schedule = Schedule::basic, .split_k = 2},
    {.block_m = 64, .block_n = 64, .schedule = Schedule::basic, .split_k = 4},
    {.block_m = 64, .block_n = 8, .schedule = Schedule::basic, .transposed = true},
    {.block_m = 64, .block_n = 16, .schedule = Schedule::basic, .transposed = true},
    {.block_m = 128, .block_n = 32, .schedule = Schedule::basic, .transposed = true},
    {.block_m = 64,
     .block_n = 16,
     .schedule = Schedule::basic,
     .split_k = 2,
     .min_ctas_per_sm = 2,
     .transposed = true},
    {.block_m = 64,
     .block_n = 32,
     .schedule = Schedule::basic,
     .split_k = 4,
     .min_ctas_per_sm = 2,
     .transposed = true},
    {.block_m = 64, .block_n = 48, .schedule = Schedule::basic, .split_k = 6, .transposed = true},
    {.block_m = 64, .block_n = 64, .schedule = Schedule::basic, .split_k = 8, .transposed = true},
};

struct Majors {
  Major a, b;
};

constexpr GemmSm90Config typed(GemmSm90Config tile, DType a, DType b, DType out) {
  tile.a = a, tile.b = b, tile.out = out;
  return tile;
}

/// Calls add(configuration) for each entry of gemm_sm90's table.
template <class Add> constexpr void list_gemm_sm90(Add add) {
  constexpr DType bf16 = DType::bf16, f16 = DType::f16, f32 = DType::f32, tf32 = DType::tf32;
  auto const add_activating = [&](GemmSm90Config c) {
    c.activates = true;
    add(c);
  };
  for (DType t : {bf16, f16}) {
    for (GemmSm90Config tile : full_tiles) add(typed(tile, t, t, t));
    for (GemmSm90Config tile : middle_tiles) add(typed(tile, t, t, t));
    for (GemmSm90Config tile : few_rows_tiles) add(typed(tile, t, t, t));
    for (GemmSm90Config tile : {large_tile, medium_tile, small_tile}) add(typed(tile, t, t, t));
    for (GemmSm90Config tile : {large_tile, small_tile}) {
      add(typed(tile, t, t, f32));
      add_activating(typed(tile, t, t, t));
    }
    for (Majors majors :  // by name: clang 14 captures no structured binding
         {Majors{Major::k, Major::k},
          {Major::k, Major::mn},
          {Major::mn, Major::k},
          {Major::mn, Major::mn}}) {
      auto const add_major = [&](GemmSm90Config c) {
        c.a_major = majors.a, c.b_major = majors.b;
        add(c);
      };
      bool const k_major = majors.a == Major::k && majors.b == Major::k;
      add_major(typed(medium_tile, t, t, t == bf16 ? f16 : bf16));
      if (!k_major) {
        add_major(typed(medium_tile, t, t, f32));
        for (GemmSm90Config tile : {large_tile, small_tile}) add_major(typed(tile, t, t, t));
      }
    }
  }
  for (GemmSm90Config tile : {large_tile, medium_tile, small_tile})
    add(typed(tile, tf32, tf32, f32));
  for (DType out : {bf16, f16}) add(typed(medium_tile, tf32, tf32, out));
  for (DType out : {bf16, f16, f32}) add_activating(typed(medium_tile, tf32, tf32, out));
  for (DType a : {DType::e4m3, DType::e5m2}) {
    for (DType b : {DType::e4m3, DType::e5m2}) {
      for (DType out : {bf16, f16, f32}) {
        add(typed(medium_tile, a, b, out));
        add_activating(typed(medium_tile, a, b, out));
      }
    }
  }
  for (GemmSm90Config tile : fp8_tiles) add(typed(tile, DType::e4m3, DType::e4m3, bf16));
  for (GemmSm90Config tile : {large_tile, small_tile})
    add(typed(tile, DType::e4m3, DType::e4m3, bf16));
}

constexpr auto gemm_sm90_table() {
  constexpr int count = [] {
    int n = 0;
    list_gemm_sm90([&](GemmSm90Config const&) { ++n; });
    return n;
  }();
  Table<GemmSm90Config, count> table;
  int i = 0;
  list_gemm_sm90([&](GemmSm90Config const& c) { table.values[i++] = c; });
  return table;
}

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
  launched.a_major = launched.b_major = Major::mn;
  add(pair(launched));
}

constexpr auto gemm_sm100_table() {
  constexpr int count = [] {
    int n = 0;
    list_gemm_sm100([&](GemmSm100Config const&) { ++n; });
    return n;
  }();
  Table<GemmSm100Config, count> table;
  int i = 0;
  list_gemm_sm100([&](GemmSm100Config const& c) { table.values[i++] = c; });
  return table;
}

/// The tiles of grouped_gemm_sm90 with scales: the large one, which reads the fewest bytes from L2
/// for its products, ...
inline constexpr GroupedGemmSm90Config scaled_large_tile = {
    .block_m = 256, .block_n = 128, .cluster_n = 2};
inline constexpr GroupedGemmSm90Config scaled_tile = {.block_m = 128, .block_n = 128};
/// ... widths beside it that may cut N into fewer waves, and tiles of few rows: what is not
/// multiplied twice is read soonest by many narrow ones.
inline constexpr GroupedGemmSm90Config scaled_tiles[] = {
    scaled_large_tile,
    {.block_m = 128, .block_n = 160},
    {.block_m = 128, .block_n = 128, .cluster_n = 2},
    scaled_tile,
    {.block_m = 64, .block_n = 128},
    {.block_m = 64, .block_n = 64},
    {.block_m = 64, .block_n = 32},
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
  for (DType out : {bf16, f32}) add(typed(scaled_tile, e5m2, e4m3, out, blocks));
  for (GroupedGemmSm90Config tile : {GroupedGemmSm90Config{.block_m = 256}, scaled_tile})
    add(typed(tile, e4m3, e4m3, f32, rows));
  add(typed(scaled_tile, e4m3, e4m3, bf16, rows));
  add(typed(scaled_tile, e5m2, e4m3, f32, rows));
  for (GroupedGemmSm90Config tile : grouped_tiles) {
    add(typed(tile, bf16, bf16, bf16, Scales::none));
    add(typed(tile, DType::f16, DType::f16, DType::f16, Scales::none));
  }
  for (DType in : {bf16, DType::f16}) add(typed(grouped_tiles[1], in, in, f32, Scales::none));
  add(typed(grouped_tiles[0], bf16, bf16, f32, Scales::none));
}

constexpr auto grouped_gemm_sm90_table() {
  constexpr int count = [] {
    int n = 0;
    list_grouped_gemm_sm90([&](GroupedGemmSm90Config const&) { ++n; });
    return n;
  }();
  Table<GroupedGemmSm90Config, count> table;
  int i = 0;
  list_grouped_gemm_sm90([&](GroupedGemmSm90Config const& c) { table.values[i++] = c; });
  return table;
}

constexpr auto gemm_inputs_table() {
  Table<GemmInputsConfig, 2 * 2 * 2 + 2> table;
  int i = 0;
  for (InputStep step : {InputStep::quantize_rows, InputStep::quantize_blocks})
    for (DType in : {DType::bf16, DType::f32})
      for (DType out : {DType::e4m3, DType::e5m2}) table.values[i++] = {step, in, out};
  for (InputStep step : {InputStep::transform_scales, InputStep::group_bounds})
    table.values[i++] = {.step = step};
  return table;
}
}  // namespace detail

template <AttentionConfig C> struct AttentionSm80;
template <AttentionSm90Config C> struct AttentionSm90;
template <AttentionSm100Config C> struct AttentionSm100;
template <GemmConfig C> struct GemmSm80;
template <GemmSm90Config C> struct GemmSm90;
template <GroupedGemmSm90Config C> struct GroupedGemmSm90;
template <GemmInputsConfig C> struct GemmInputs;
template <GemmSm100Config C> struct GemmSm100;
template <AppendKeysConfig C> struct AppendKeys;

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

/// kernel/attention_sm90.hpp; of latent attention kernel/attention_latent_sm90.hpp
struct AttentionSm90Family {
  static constexpr char const* name = "attention_sm90";
  using Config = AttentionSm90Config;
  using Params = AttentionSm90Params;
  template <Config C> using Kernel = AttentionSm90<C>;
  static constexpr auto table = detail::attention_sm90_table();

  /// bf16 at every tile; the polynomial and f16 where the tile is smallest; e4m3 at each head dim
  /// with sums in f32, and at one with the tensor core's.
  /// For serving, bf16 and e4m3 at the smaller tiles, and latent attention.
  static constexpr bool is_representative(Config const& c) {
    if (c.dtype == DType::e4m3) return (c.promoted > 0 && !c.serving) || c.head_dim == 128;
    if (c.serving)
      return c.dtype == DType::bf16 &&
             (c.head_dim == 64 || c.latent || (c.head_dim == 128 && c.consumers == 1));
    bool const polynomial = c.exponential == Exponential::polynomial;
    if (c.dtype == DType::bf16) return !polynomial || c.head_dim == 128;
    return !polynomial && c.head_dim == 64;
  }
};

/// kernel/attention_sm100.hpp
struct AttentionSm100Family {
  static constexpr char const* name = "attention_sm100";
  using Config = AttentionSm100Config;
  using Params = AttentionSm100Params;
  template <Config C> using Kernel = AttentionSm100<C>;
  static constexpr auto table = detail::attention_sm100_table();

  /// bf16 at each head dim with a share of polynomials; f16 with none.
  static constexpr bool is_representative(Config const& c) {
    if (c.dtype == DType::bf16) return c.polynomials > 0;
    return c.head_dim == 128 && c.polynomials == 0 && c.exponential == Exponential::ex2_approx;
  }
};

/// kernel/gemm_sm80.hpp
struct GemmSm80Family {
  static constexpr char const* name = "gemm_sm80";
  using Config = GemmConfig;
  using Params = GemmParams;
  template <Config C> using Kernel = GemmSm80<C>;
  static constexpr auto table = detail::gemm_sm80_table();

  /// bf16 with operands of all majors, copied either way; f16 with K-major ones, and with
  /// all where single elements are copied into f32; one large tile of each.
  static constexpr bool is_representative(Config const& c) {
    bool const a_k = c.a_major == Major::k, b_k = c.b_major == Major::k;
    if (c.in == DType::bf16) return c.out == DType::bf16 && (c.block_n == 128 || (!a_k && !b_k));
    if (c.out == DType::f32 && c.vector_bytes == 2) return true;
    return c.out != DType::bf16 && a_k && b_k;
  }
};

/// kernel/gemm_sm90.hpp
struct GemmSm90Family {
  static constexpr char const* name = "gemm_sm90";
  using Config = GemmSm90Config;
  using Params = GemmSm90Params;
  template <Config C> using Kernel = GemmSm90<C>;
  static constexpr auto table = detail::gemm_sm90_table();

  /// bf16 with each schedule and shape of clusters, tiles of two widths, K split, D transposed, and
  /// B of either major; small tiles of f16; one or two of every other type.
  static constexpr bool is_representative(Config const& c) {
    bool const a_k = c.a_major == Major::k, b_k = c.b_major == Major::k;
    bool const large = c.block_n == 256 && c.cluster_m == 2,
               medium = c.block_m == 128 && c.block_n == 128, small = c.block_m == 64;
    if (c.a == DType::tf32) return c.out == DType::f32 && medium && !c.activates;
    if (c.a == DType::e4m3)
      return c.b == DType::e4m3 ? c.block_n == 192
                                : c.out == (c.activates ? DType::bf16 : DType::f32);
    if (c.activates) return c.a == DType::f16 && small;
    if (c.a == DType::f16)
      return a_k && b_k && c.out != DType::bf16 && small && (c.block_n == 128 || c.block_n == 16) &&
             c.split_k == 1 && c.cluster_n == 1;
    if (c.a != DType::bf16) return false;
    if (c.out == DType::f32) return a_k && b_k && small;
    if (c.out != DType::bf16) return false;
    if (!a_k || !b_k) return small && !b_k;
    if (c.transposed)
      return c.block_n == 80 || (c.block_m == 128 && c.block_n == 160) ||
             (c.block_n == 16 && c.split_k == 2);
    return large || (medium && c.cluster_m * c.cluster_n == 1) ||
           (small && (c.split_k > 1 || (c.block_n == 64 && c.cluster_m == 1))) ||
           c.block_m == 256 || c.narrow_n == 160;
  }
};

/// kernel/gemm_sm100.hpp
struct GemmSm100Family {
  static constexpr char const* name = "gemm_sm100";
  using Config = GemmSm100Config;
  using Params = GemmSm90Params;
  template <Config C> using Kernel = GemmSm100<C>;
  static constexpr auto table = detail::gemm_sm100_table();

  /// bf16 at every tile and of all majors, by one CTA and by pairs, dealt in both ways; one or two
  /// of every other type.
  static constexpr bool is_representative(Config const& c) {
    return c.a != DType::f16 || c.block_n == 128;
  }
};

/// kernel/grouped_gemm_sm90.hpp
struct GroupedGemmSm90Family {
  static constexpr char const* name = "grouped_gemm_sm90";
  using Config = GroupedGemmSm90Config;
  using Params = GroupedGemmSm90Params;
  template <Config C> using Kernel = GroupedGemmSm90<C>;
  static constexpr auto table = detail::grouped_gemm_sm90_table();

  /// e4m3 with scales in every tile, and of every kind into f32; bf16 with and without a cluster,
  /// and into f32; one of every other type.
  static constexpr bool is_representative(Config const& c) {
    bool const tile = c.block_m == 128 && c.block_n == 128 && c.cluster_n == 1;
    if (c.a == DType::e5m2) return c.scales == Scales::rows_by_blocks && c.out == DType::bf16;
    if (c.scales == Scales::rows_by_rows) return c.out == DType::f32;
    if (c.scales == Scales::rows_by_blocks) return c.out == DType::bf16 || tile;
    if (c.a == DType::f16) return c.block_m == 64;
    return c.out == DType::bf16 || tile;
  }
};

/// kernel/gemm_inputs.hpp
struct GemmInputsFamily {
  static constexpr char const* name = "gemm_inputs";
  using Config = GemmInputsConfig;
  using Params = GemmInputsParams;
  template <Config C> using Kernel = GemmInputs<C>;
  static constexpr auto table = detail::gemm_inputs_table();

  /// All: they are small.
  static constexpr bool is_representative(Config const&) { return true; }
};

/// kernel/append_keys.hpp
struct AppendKeysFamily {
  static constexpr char const* name = "append_keys";
  using Config = AppendKeysConfig;
  using Params = AppendKeysParams;
  template <Config C> using Kernel = AppendKeys<C>;
  static constexpr detail::Table<AppendKeysConfig, 2> table = {{{}, {.quantises = true}}};

  static constexpr bool is_representative(Config const&) { return true; }
};

// A family is a value: configurations(gemm_sm90) are its configurations (device/launch.hpp). CMake
// reads the families' names here.
inline constexpr AttentionSm80Family attention_sm80;
inline constexpr AttentionSm90Family attention_sm90;
inline constexpr GemmSm80Family gemm_sm80;
inline constexpr GemmSm90Family gemm_sm90;
inline constexpr GroupedGemmSm90Family grouped_gemm_sm90;
inline constexpr GemmInputsFamily gemm_inputs;
inline constexpr GemmSm100Family gemm_sm100;
inline constexpr AppendKeysFamily append_keys;
inline constexpr AttentionSm100Family attention_sm100;

/// Every family. Of those that compute the same, a later one is preferred.
using Families = FamilyList<AttentionSm80Family, AttentionSm90Family, GemmSm80Family,
                            GemmSm90Family, GroupedGemmSm90Family, GemmInputsFamily,
                            GemmSm100Family, AppendKeysFamily, AttentionSm100Family>;

/// The family of a configuration's type.
template <class Config> using FamilyOf = typename detail::FamilyOfConfig<Config, Families>::type;
template <class Config>
concept FamilyConfig = requires {
  typename FamilyOf<Config>;
};

}  // namespace tegula
