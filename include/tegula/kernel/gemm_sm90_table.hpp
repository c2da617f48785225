#pragma once

#include <initializer_list>

#include "tegula/kernel/gemm_sm90_config.hpp"
#include "tegula/kernel/table.hpp"
#include "tegula/numeric/dtype.hpp"

/// The configurations of gemm_sm90.
namespace tegula {

namespace detail {
/// A tile of m x n in clusters of cluster_m x cluster_n, for each schedule.
constexpr GemmSm90Config basic(int m, int n, int cluster_m = 1, int cluster_n = 1) {
  return {.block_m = m,
          .block_n = n,
          .schedule = Schedule::basic,
          .cluster_m = cluster_m,
          .cluster_n = cluster_n};
}
constexpr GemmSm90Config cooperative(int m, int n, int cluster_m = 1, int cluster_n = 1) {
  GemmSm90Config tile = basic(m, n, cluster_m, cluster_n);
  tile.schedule = Schedule::cooperative;
  return tile;
}
constexpr GemmSm90Config pingpong(int m, int n, int cluster_m = 1, int cluster_n = 1) {
  GemmSm90Config tile = basic(m, n, cluster_m, cluster_n);
  tile.schedule = Schedule::pingpong;
  return tile;
}
/// The tile with a second main loop, for tiles of narrow_n columns.
constexpr GemmSm90Config two_widths(GemmSm90Config tile, int narrow_n) {
  tile.narrow_n = narrow_n;
  return tile;
}
/// The tile with D transposed.
constexpr GemmSm90Config transposed(GemmSm90Config tile) {
  tile.transposed = true;
  return tile;
}
/// The tile with a transposed D that leaves straight from registers.
constexpr GemmSm90Config from_registers(GemmSm90Config tile) {
  tile.store_buffers = 0;
  return transposed(tile);
}
/// The tile for two CTAs an SM.
constexpr GemmSm90Config two_ctas(GemmSm90Config tile) {
  tile.min_ctas_per_sm = 2;
  return tile;
}
/// The tile with its K shared by split_k CTAs of a cluster.
constexpr GemmSm90Config sharing_k(GemmSm90Config tile, int split_k) {
  tile.split_k = split_k;
  return tile;
}
/// The tile with its K shared by any number of clusters.
constexpr GemmSm90Config in_parts(GemmSm90Config tile) {
  tile.in_parts = true;
  return tile;
}

/// The tiles of gemm_sm90, apart from their types. They were picked by their speed on an H200
/// (docs/decisions.md, 153 to 186): which are here decides how fast a problem is computed, not
/// whether.
inline constexpr GemmSm90Config large_tile = two_widths(cooperative(128, 256, 2), 240);
inline constexpr GemmSm90Config small_tile = basic(64, 128);
inline constexpr GemmSm90Config medium_tile = cooperative(128, 128);
/// Of 16-bit operands: for problems that fill the device several times over, ...
inline constexpr GemmSm90Config full_tiles[] = {cooperative(256, 128, 1, 2),
                                                cooperative(128, 224, 2),
                                                pingpong(128, 192, 2),
                                                two_widths(pingpong(128, 176, 2), 160),
                                                two_widths(pingpong(128, 160, 2), 144),
                                                pingpong(128, 128, 2),
                                                two_widths(cooperative(128, 256), 240),
                                                transposed(pingpong(128, 160, 2)),
                                                cooperative(192, 192)};
/// ... for those of a wave or two, whose tiles differ so that one of them leaves few SMs idle, ...
inline constexpr GemmSm90Config middle_tiles[] = {cooperative(128, 208),
                                                  cooperative(128, 176),
                                                  cooperative(128, 160),
                                                  cooperative(128, 144),
                                                  transposed(cooperative(128, 144)),
                                                  cooperative(128, 96),
                                                  transposed(cooperative(128, 96)),
                                                  cooperative(128, 128, 2, 2),
                                                  basic(64, 64),
                                                  basic(64, 96),
                                                  basic(64, 192),
                                                  sharing_k(basic(64, 128), 4),
                                                  sharing_k(basic(64, 96), 3),
                                                  sharing_k(basic(64, 96, 2), 2),
                                                  two_ctas(basic(64, 64)),
                                                  cooperative(192, 144, 1, 2),
                                                  cooperative(128, 80, 1, 2),
                                                  basic(64, 96, 4),
                                                  transposed(cooperative(128, 208)),
                                                  transposed(cooperative(192, 64)),
                                                  transposed(cooperative(192, 80, 4, 2)),
                                                  transposed(basic(64, 80, 4))};
/// ... and for few rows, which a transposed D takes for columns: weights are what such problems
/// read, and more CTAs at a time read faster.
inline constexpr GemmSm90Config few_rows_tiles[] = {
    from_registers(basic(64, 8)),
    from_registers(basic(64, 16)),
    from_registers(basic(64, 32)),
    transposed(basic(128, 32)),
    from_registers(two_ctas(sharing_k(basic(64, 16), 2))),
    from_registers(two_ctas(sharing_k(basic(64, 32), 4))),
    from_registers(sharing_k(basic(64, 64), 4)),
    from_registers(sharing_k(basic(64, 64), 8)),
    from_registers(sharing_k(basic(64, 32), 2)),
    from_registers(basic(64, 16, 4))};
/// Those of 8-bit operands.
inline constexpr GemmSm90Config fp8_tiles[] = {
    pingpong(128, 192, 2),
    two_widths(pingpong(128, 176, 2), 160),
    two_widths(pingpong(128, 160, 2), 144),
    pingpong(128, 128, 2),
    pingpong(64, 256, 2),
    two_widths(cooperative(128, 256), 240),
    cooperative(128, 224, 2),
    transposed(pingpong(128, 160, 2)),
    cooperative(128, 208),
    cooperative(128, 96),
    basic(64, 64),
    two_ctas(basic(64, 64)),
    basic(64, 96),
    sharing_k(basic(64, 64), 2),
    from_registers(basic(64, 8)),
    from_registers(basic(64, 16)),
    transposed(basic(128, 32)),
    from_registers(two_ctas(sharing_k(basic(64, 16), 2))),
    from_registers(two_ctas(sharing_k(basic(64, 32), 4))),
    from_registers(sharing_k(basic(64, 64), 8)),
    from_registers(two_ctas(basic(64, 16))),
    from_registers(sharing_k(basic(64, 64), 4)),
    transposed(cooperative(128, 80)),
    transposed(cooperative(128, 96)),
    transposed(cooperative(128, 144)),
    cooperative(128, 160),
    sharing_k(basic(64, 96), 3),
    from_registers(sharing_k(basic(64, 32), 2)),
    from_registers(sharing_k(basic(64, 32), 4)),
    cooperative(192, 192),
    cooperative(192, 144, 1, 2),
    cooperative(192, 128),
    cooperative(128, 80, 1, 2),
    transposed(cooperative(128, 208)),
    transposed(cooperative(128, 104, 1, 2)),
    basic(64, 96, 4),
    transposed(basic(64, 80, 4))};

/// Of both: tiles that fill the device once, then tiles whose K is shared. They were timed in
/// rounds, and those stayed that were the fastest often enough (decisions 153, 166, 169, 171, 175,
/// 177, 179, 183, 185 and 186).
inline constexpr GemmSm90Config filling_tiles[] = {
    transposed(cooperative(128, 104, 1, 4)), transposed(basic(64, 104, 4)),
    transposed(cooperative(192, 144, 1, 2)), transposed(cooperative(192, 160, 1, 2)),
    transposed(cooperative(256, 160, 1, 2)), transposed(basic(64, 168, 4)),
    transposed(cooperative(128, 224, 4)), basic(64, 112, 4, 2), cooperative(128, 80, 1, 4),
    transposed(cooperative(128, 152, 2)), transposed(pingpong(128, 120)),
    transposed(pingpong(128, 168)), transposed(pingpong(128, 144, 2)),
    transposed(pingpong(128, 176, 2)), transposed(pingpong(128, 184, 2)),
    transposed(pingpong(128, 192, 2)), transposed(pingpong(128, 152, 4)), pingpong(128, 176, 2, 4),
    transposed(cooperative(128, 32, 4)), transposed(cooperative(128, 200)),
    transposed(cooperative(128, 240, 2)), transposed(cooperative(192, 200, 1, 2)),
    transposed(basic(64, 40)), basic(64, 80), cooperative(192, 112, 1, 2),
    cooperative(192, 96, 1, 2), transposed(cooperative(192, 112)),
    transposed(cooperative(256, 152)), cooperative(128, 240), transposed(cooperative(128, 104)),
    basic(64, 112), transposed(basic(64, 120)), transposed(basic(64, 40, 4)),
    transposed(basic(64, 152, 4)), cooperative(192, 160, 2),
    // For rows that begin inside of lines of L2, of which more CTAs take what is read once.
    transposed(cooperative(192, 80, 1, 4)), transposed(cooperative(128, 112, 4, 2)),
    transposed(cooperative(256, 144, 1, 2)), transposed(basic(64, 80)), transposed(basic(64, 96)),
    transposed(cooperative(128, 88)), transposed(cooperative(128, 112)),
    transposed(cooperative(128, 168)), cooperative(128, 192),
    // In clusters of eight.
    basic(64, 64, 2, 4), basic(64, 112, 2, 4), transposed(basic(64, 88, 4, 2)),
    transposed(basic(64, 112, 4, 2)), cooperative(128, 160, 4, 2), cooperative(192, 192, 4, 2),
    // Those that peers have where others lost, and some of a lattice of 1,021 tiles and clusters.
    cooperative(128, 128, 4, 2), cooperative(128, 112, 4), basic(64, 144, 4),
    cooperative(128, 208, 2), from_registers(basic(64, 8, 4)), cooperative(128, 192, 4, 2),
    transposed(cooperative(256, 136, 1, 2)), from_registers(cooperative(128, 16)), basic(64, 32),
    transposed(cooperative(256, 136)), transposed(cooperative(192, 160, 4, 2)),
    transposed(cooperative(128, 24)), transposed(cooperative(128, 176, 4, 2)), cooperative(128, 80),
    basic(64, 112, 1, 4), transposed(cooperative(192, 184, 1, 2)), cooperative(192, 128, 1, 2),
    basic(64, 48), cooperative(128, 80, 4), transposed(cooperative(128, 56)),
    transposed(cooperative(128, 224, 2)), cooperative(128, 64, 1, 4), cooperative(128, 112),
    cooperative(128, 96, 2), cooperative(128, 112, 2), cooperative(128, 144, 2),
    transposed(basic(64, 72, 4)), basic(64, 176, 4), transposed(cooperative(128, 152, 2, 2)),
    // Those that cuBLAS takes where others lost.
    transposed(cooperative(128, 136, 1, 2)), cooperative(128, 112, 4, 2),
    cooperative(192, 80, 1, 4), transposed(cooperative(256, 144, 4)), cooperative(192, 176, 2),
    transposed(cooperative(128, 96, 1, 4)), transposed(cooperative(128, 96, 4)),
    transposed(cooperative(128, 80, 1, 4)), cooperative(128, 96, 2, 4), cooperative(128, 80, 4, 2),
    cooperative(128, 144, 4, 2), transposed(cooperative(128, 96, 4, 2)),
    transposed(cooperative(192, 88, 1, 2)), basic(64, 64, 4, 2),
    transposed(cooperative(128, 176, 1, 2)), cooperative(128, 112, 2, 4),
    // Likewise, since D's rows may end with 8 columns.
    pingpong(128, 136, 2), pingpong(128, 152, 2), pingpong(128, 168, 2), pingpong(128, 184, 2),
    pingpong(128, 120, 2), cooperative(128, 72), cooperative(192, 104, 1, 4), basic(64, 152, 4),
    basic(64, 104, 4), cooperative(256, 160, 2), cooperative(192, 128, 2), cooperative(192, 192, 2),
    cooperative(192, 112, 2), basic(64, 160, 4), cooperative(128, 208, 4),
    cooperative(128, 128, 2, 4), transposed(cooperative(256, 160, 2)),
    transposed(cooperative(128, 208, 4, 2)), basic(64, 72, 1, 4), transposed(basic(64, 136, 4)),
    cooperative(128, 88, 1, 4), transposed(cooperative(192, 176, 1, 2)), basic(64, 96, 1, 4),
    transposed(cooperative(192, 144, 1, 4)), transposed(cooperative(192, 128, 1, 2)),
    cooperative(128, 128, 1, 2), basic(64, 144, 1, 2), transposed(cooperative(128, 160, 4, 2)),
    pingpong(128, 112, 2), pingpong(128, 96, 2), transposed(cooperative(192, 192, 2)),
    transposed(cooperative(128, 248, 2)), transposed(cooperative(256, 152, 1, 2)),
    transposed(cooperative(256, 152, 2)), transposed(cooperative(128, 232, 2)),
    transposed(cooperative(256, 96, 2)), transposed(cooperative(128, 72, 4)),
    transposed(cooperative(128, 48, 4)), transposed(cooperative(128, 216, 2)),
    transposed(cooperative(128, 200, 2)), transposed(cooperative(192, 176, 2)),
    transposed(cooperative(128, 168, 2)), from_registers(basic(64, 24, 4)),
    transposed(cooperative(128, 24, 4)), cooperative(128, 144, 1, 2), cooperative(192, 176, 1, 2),
    // K is shared by most of these.
    sharing_k(cooperative(128, 192, 2), 2), transposed(sharing_k(basic(64, 144, 2), 2)),
    from_registers(sharing_k(basic(64, 128, 2), 4)), from_registers(sharing_k(basic(64, 96), 4)),
    basic(64, 112, 4), cooperative(128, 176, 1, 2), basic(64, 96, 2, 4),
    cooperative(128, 112, 1, 2), cooperative(256, 160, 1, 2), transposed(basic(64, 120, 2)),
    transposed(cooperative(192, 104, 1, 2)), from_registers(two_ctas(sharing_k(basic(64, 48), 3))),
    from_registers(sharing_k(basic(64, 96, 2), 2)), sharing_k(basic(64, 192, 2), 4),
    sharing_k(basic(64, 144), 3), sharing_k(cooperative(128, 128, 2), 4),
    sharing_k(cooperative(192, 96), 2)};

/// Of both, for a long K and few tiles: any number of clusters share a tile
/// (decisions 172, 180, 183, 185 and 186).
inline constexpr GemmSm90Config tiles_in_parts[] = {
    from_registers(in_parts(basic(64, 136, 4))),
    in_parts(basic(64, 96, 4, 2)),
    from_registers(in_parts(basic(64, 72))),
    from_registers(in_parts(cooperative(128, 112, 4, 2))),
    in_parts(cooperative(128, 256, 2)),
    in_parts(cooperative(128, 112, 4, 2)),
    in_parts(cooperative(256, 160)),
    from_registers(in_parts(cooperative(128, 96, 2, 2))),
    from_registers(in_parts(basic(64, 176, 4))),
    from_registers(in_parts(cooperative(128, 96))),
    from_registers(in_parts(basic(64, 32))),
    in_parts(basic(64, 96, 4)),
    in_parts(cooperative(128, 128, 2)),
    from_registers(in_parts(cooperative(128, 160, 4, 2))),
    from_registers(in_parts(cooperative(192, 96, 1, 2))),
    from_registers(in_parts(cooperative(192, 96))),
    in_parts(cooperative(128, 128)),
    in_parts(cooperative(128, 160)),
    in_parts(cooperative(128, 192, 2)),
    in_parts(cooperative(192, 144)),
    from_registers(in_parts(cooperative(128, 144))),
    in_parts(cooperative(256, 160, 2)),
    from_registers(in_parts(cooperative(192, 176))),
    from_registers(in_parts(cooperative(128, 176, 2))),
    in_parts(cooperative(128, 160, 2)),
    from_registers(in_parts(basic(64, 176))),
    from_registers(in_parts(basic(64, 96, 4))),
    in_parts(cooperative(192, 128)),
    in_parts(cooperative(128, 144, 2, 2)),
    from_registers(in_parts(basic(64, 72, 1, 4))),
    in_parts(cooperative(128, 96))};

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
    for (GemmSm90Config tile : filling_tiles) add(typed(tile, t, t, t));
    for (GemmSm90Config tile : tiles_in_parts) add(typed(tile, t, t, t));
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
  for (GemmSm90Config tile : filling_tiles) add(typed(tile, DType::e4m3, DType::e4m3, bf16));
  for (GemmSm90Config tile : tiles_in_parts) add(typed(tile, DType::e4m3, DType::e4m3, bf16));
  for (GemmSm90Config tile : {large_tile, small_tile})
    add(typed(tile, DType::e4m3, DType::e4m3, bf16));
}

constexpr auto gemm_sm90_table() {
  return table_of<GemmSm90Config>(
      [](auto add) { list_gemm_sm90([&](GemmSm90Config const& c) { add(with_more_stages(c)); }); });
}
}  // namespace detail

template <GemmSm90Config C> struct GemmSm90;

/// kernel/gemm_sm90.hpp
struct GemmSm90Family {
  static constexpr char const* name = "gemm_sm90";
  using Config = GemmSm90Config;
  using Params = GemmSm90Params;
  template <Config C> using Kernel = GemmSm90<C>;
  static constexpr auto table = detail::gemm_sm90_table();

  /// bf16 with each schedule and shape of clusters, tiles of two widths, K split (in clusters that
  /// multicast, too), in parts, D transposed, and B of either major; small tiles of f16; one or two
  /// of every other type.
  static constexpr bool is_representative(Config const& c) {
    bool const a_k = c.a_major == Major::k, b_k = c.b_major == Major::k;
    bool const large = c.block_n == 256 && c.cluster_m == 2,
               medium = c.block_m == 128 && c.block_n == 128, small = c.block_m == 64;
    if (c.in_parts)
      return c.a == DType::bf16 &&
             ((c.block_m == 192 && c.block_n == 144) || (c.transposed && c.block_n == 160));
    if (c.a == DType::tf32) return c.out == DType::f32 && medium && !c.activates;
    if (c.a == DType::e4m3)
      return c.b == DType::e4m3
                 ? c.block_n == 192 && c.schedule == Schedule::pingpong && !c.transposed
                 : c.out == (c.activates ? DType::bf16 : DType::f32);
    if (c.activates) return c.a == DType::f16 && small;
    if (c.a == DType::f16)
      return a_k && b_k && c.out != DType::bf16 && small && (c.block_n == 128 || c.block_n == 16) &&
             cluster_size(c) == 1 && c.transposed == (c.block_n == 16);
    if (c.a != DType::bf16) return false;
    if (c.out == DType::f32) return a_k && b_k && small;
    if (c.out != DType::bf16) return false;
    if (!a_k || !b_k) return small && !b_k;
    if (c.transposed)
      return (c.block_m == 192 && c.block_n == 80 && c.cluster_m == 4) ||
             (c.schedule == Schedule::pingpong && c.block_n == 160) ||
             (c.block_n == 16 && c.split_k == 2);
    return large || (medium && c.cluster_m * c.cluster_n == 1) ||
           (small && c.block_n <= 128 &&
            c.split_k == (c.block_n == 96 && c.cluster_m == 2 ? 2 : 4)) ||
           (small && c.block_n == 64 && cluster_size(c) * c.min_ctas_per_sm == 1) ||
           (c.block_m == 256 && c.block_n == 128 && c.cluster_n == 2) ||
           (c.block_m == 192 && c.block_n == 104) || c.narrow_n == 160;
  }
};

}  // namespace tegula
