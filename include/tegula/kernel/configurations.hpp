#pragma once

#include <initializer_list>

#include "tegula/kernel/attention_config.hpp"
#include "tegula/kernel/gemm_config.hpp"
#include "tegula/kernel/gemm_sm90_config.hpp"
#include "tegula/layout/refuse.hpp"

/// Every kernel configuration that is built, as tables of values; a kernel is named by its index into a
/// table, because a __global__ template cannot take the configuration itself (DESIGN: nvcc's host stub cannot
/// print a value of class type). How many there are stands in src/device/CMakeLists.txt too, which makes a
/// translation unit of each.
namespace tegula {

/// The tile shapes for a head dim, tuned for speed on an H100. They fit an A100 too (163 KB of shared
/// memory), but for head dim 256, which has a second shape for devices with less shared memory than an H100:
/// `small`.
constexpr AttentionConfig tuned_attention_sm80(DType dtype, int head_dim, bool causal,
                                               Exponential exponential, bool small = false) {
  AttentionConfig c{.dtype = dtype, .head_dim = head_dim, .causal = causal, .exponential = exponential};
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
      // At the limit of 255 registers: the polynomial's temporaries leave none for scores of 64 keys, and
      // with the causal mask fewer fragments are loaded ahead. The resource check of the CUDA build holds
      // these to no spills.
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
  // For large problems: the largest tile whose accumulators a thread can hold, for it reads the least from
  // L2.
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

/// The tiles of gemm_sm90, apart from their types. Tuned for speed on an H100: which are here decides how
/// fast a problem is computed, not whether. Of every shape tried, these lose 0.2 % on average against the
/// best for each of 26 problems (docs/hopper_gemm.md).
inline constexpr GemmSm90Config large_tile = {
    .block_m = 128, .block_n = 256, .cluster_m = 2, .narrow_n = 240};
inline constexpr GemmSm90Config small_tile = {.block_m = 64, .block_n = 128, .schedule = Schedule::basic};
inline constexpr GemmSm90Config medium_tile = {.block_m = 128, .block_n = 128};
/// For problems that fill the device. The widths of the ping-pong tiles differ so that one of them cuts N
/// into about a whole number of waves, ...
inline constexpr GemmSm90Config full_tiles[] = {
    large_tile,
    {.block_m = 256, .block_n = 128, .cluster_n = 2},
    {.block_m = 128, .block_n = 192, .cluster_m = 2},
    {.block_m = 128, .block_n = 192, .schedule = Schedule::pingpong, .cluster_m = 2},
    {.block_m = 128, .block_n = 176, .schedule = Schedule::pingpong, .cluster_m = 2, .narrow_n = 160},
    {.block_m = 128, .block_n = 160, .schedule = Schedule::pingpong, .cluster_m = 2, .narrow_n = 144},
};
/// ... and for those that do not: few rows, or few tiles that share K between CTAs.
inline constexpr GemmSm90Config narrow_tiles[] = {
    medium_tile,
    small_tile,
    {.block_m = 64, .block_n = 64, .schedule = Schedule::basic},
    {.block_m = 64, .block_n = 64, .schedule = Schedule::basic, .split_k = 2},
    {.block_m = 64, .block_n = 128, .schedule = Schedule::basic, .split_k = 4},
    {.block_m = 128, .block_n = 32, .schedule = Schedule::basic, .split_k = 2},
};
/// Those of 8-bit operands.
inline constexpr GemmSm90Config fp8_tiles[] = {
    large_tile,
    {.block_m = 128, .block_n = 192, .schedule = Schedule::pingpong, .cluster_m = 2},
    {.block_m = 128, .block_n = 176, .schedule = Schedule::pingpong, .cluster_m = 2, .narrow_n = 160},
    {.block_m = 128, .block_n = 160, .schedule = Schedule::pingpong, .cluster_m = 2, .narrow_n = 144},
    {.block_m = 128, .block_n = 128, .schedule = Schedule::pingpong, .cluster_m = 2},
    small_tile,
    {.block_m = 128, .block_n = 64},
    {.block_m = 64, .block_n = 64, .schedule = Schedule::basic},
    {.block_m = 64, .block_n = 64, .schedule = Schedule::basic, .split_k = 2},
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
  auto const add_activations = [&](GemmSm90Config c) {
    for (Activation activation : {Activation::relu, Activation::gelu, Activation::silu}) {
      c.activation = activation;
      add(c);
    }
  };
  for (DType t : {bf16, f16}) {
    for (GemmSm90Config tile : full_tiles) add(typed(tile, t, t, t));
    for (GemmSm90Config tile : narrow_tiles) add(typed(tile, t, t, t));
    for (GemmSm90Config tile : {large_tile, small_tile}) {
      add(typed(tile, t, t, f32));
      add_activations(typed(tile, t, t, t));
    }
    for (auto [a, b] :
         {Majors{Major::k, Major::k}, {Major::k, Major::mn}, {Major::mn, Major::k}, {Major::mn, Major::mn}}) {
      auto const add_major = [&](GemmSm90Config c) {
        c.a_major = a, c.b_major = b;
        add(c);
      };
      bool const k_major = a == Major::k && b == Major::k;
      add_major(typed(medium_tile, t, t, t == bf16 ? f16 : bf16));
      if (!k_major) {
        add_major(typed(medium_tile, t, t, f32));
        for (GemmSm90Config tile : {large_tile, small_tile}) add_major(typed(tile, t, t, t));
      }
    }
  }
  for (GemmSm90Config tile : {large_tile, medium_tile, small_tile}) add(typed(tile, tf32, tf32, f32));
  for (DType out : {bf16, f16}) add(typed(medium_tile, tf32, tf32, out));
  add_activations(typed(medium_tile, tf32, tf32, f32));
  for (DType a : {DType::e4m3, DType::e5m2}) {
    for (DType b : {DType::e4m3, DType::e5m2}) {
      for (DType out : {bf16, f16, f32}) add(typed(medium_tile, a, b, out));
      add_activations(typed(medium_tile, a, b, bf16));
    }
  }
  for (GemmSm90Config tile : fp8_tiles) add(typed(tile, DType::e4m3, DType::e4m3, bf16));
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
}  // namespace detail

inline constexpr auto attention_sm80_configs = detail::attention_sm80_table();
inline constexpr auto gemm_sm80_configs = detail::gemm_sm80_table();
inline constexpr auto gemm_sm90_configs = detail::gemm_sm90_table();

}  // namespace tegula
