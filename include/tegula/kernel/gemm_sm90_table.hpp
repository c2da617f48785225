#pragma once

#include <initializer_list>

#include "tegula/kernel/gemm_sm90_config.hpp"
#include "tegula/kernel/table.hpp"
#include "tegula/numeric/dtype.hpp"

/// The configurations of gemm_sm90.
namespace tegula {

namespace detail {
/// The tiles of gemm_sm90, apart from their types. Tuned for speed on an H200: which are here
/// decides how fast a problem is computed, not whether. Each was the fastest of 110 to 208 tiles at
/// enough of 1,500 random problems to be missed (docs/hopper_gemm.md).
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
    {.block_m = 192, .block_n = 192, .schedule = Schedule::cooperative, .store_buffers = 1}};
/// ... for those of a wave or two, whose tiles differ so that one of them leaves few SMs idle, ...
inline constexpr GemmSm90Config middle_tiles[] = {
    {.block_m = 128, .block_n = 208, .schedule = Schedule::cooperative},
    {.block_m = 128, .block_n = 176, .schedule = Schedule::cooperative},
    {.block_m = 128, .block_n = 160, .schedule = Schedule::cooperative},
    {.block_m = 128, .block_n = 144, .schedule = Schedule::cooperative},
    {.block_m = 128, .block_n = 144, .schedule = Schedule::cooperative, .transposed = true},
    {.block_m = 128, .block_n = 96, .schedule = Schedule::cooperative},
    {.block_m = 128, .block_n = 96, .schedule = Schedule::cooperative, .transposed = true},
    {.block_m = 128,
     .block_n = 128,
     .schedule = Schedule::cooperative,
     .cluster_m = 2,
     .cluster_n = 2},
    {.block_m = 64, .block_n = 64, .schedule = Schedule::basic},
    {.block_m = 64, .block_n = 96, .schedule = Schedule::basic},
    {.block_m = 64, .block_n = 192, .schedule = Schedule::basic},
    {.block_m = 64, .block_n = 128, .schedule = Schedule::basic, .split_k = 4},
    {.block_m = 64, .block_n = 96, .schedule = Schedule::basic, .split_k = 3},
    {.block_m = 64, .block_n = 96, .schedule = Schedule::basic, .cluster_m = 2, .split_k = 2},
    {.block_m = 64, .block_n = 64, .schedule = Schedule::basic, .min_ctas_per_sm = 2},
    {.block_m = 192, .block_n = 144, .schedule = Schedule::cooperative, .cluster_n = 2},
    {.block_m = 128, .block_n = 80, .schedule = Schedule::cooperative, .cluster_n = 2},
    {.block_m = 64, .block_n = 96, .schedule = Schedule::basic, .cluster_m = 4},
    {.block_m = 128, .block_n = 208, .schedule = Schedule::cooperative, .transposed = true},
    {.block_m = 192,
     .block_n = 64,
     .schedule = Schedule::cooperative,
     .store_buffers = 1,
     .transposed = true},
    {.block_m = 192,
     .block_n = 80,
     .schedule = Schedule::cooperative,
     .cluster_m = 4,
     .cluster_n = 2,
     .transposed = true},
    {.block_m = 64, .block_n = 80, .schedule = Schedule::basic, .cluster_m = 4, .transposed = true},
    // Its K is shared by any number of clusters. (e4m3's partial sums would not fit in registers.)
    {.block_m = 128,
     .block_n = 256,
     .schedule = Schedule::cooperative,
     .cluster_m = 2,
     .in_parts = true}};
/// ... and for few rows, which a transposed D takes for columns: weights are what such problems
/// read, and more CTAs at a time read faster.
inline constexpr GemmSm90Config few_rows_tiles[] = {{.block_m = 64,
                                                     .block_n = 8,
                                                     .schedule = Schedule::basic,
                                                     .store_buffers = 0,
                                                     .transposed = true},
                                                    {.block_m = 64,
                                                     .block_n = 16,
                                                     .schedule = Schedule::basic,
                                                     .store_buffers = 0,
                                                     .transposed = true},
                                                    {.block_m = 64,
                                                     .block_n = 32,
                                                     .schedule = Schedule::basic,
                                                     .store_buffers = 0,
                                                     .transposed = true},
                                                    {.block_m = 128,
                                                     .block_n = 32,
                                                     .schedule = Schedule::basic,
                                                     .store_buffers = 1,
                                                     .transposed = true},
                                                    {.block_m = 64,
                                                     .block_n = 16,
                                                     .schedule = Schedule::basic,
                                                     .split_k = 2,
                                                     .store_buffers = 0,
                                                     .min_ctas_per_sm = 2,
                                                     .transposed = true},
                                                    {.block_m = 64,
                                                     .block_n = 32,
                                                     .schedule = Schedule::basic,
                                                     .split_k = 4,
                                                     .store_buffers = 0,
                                                     .min_ctas_per_sm = 2,
                                                     .transposed = true},
                                                    {.block_m = 64,
                                                     .block_n = 64,
                                                     .schedule = Schedule::basic,
                                                     .split_k = 4,
                                                     .store_buffers = 0,
                                                     .transposed = true},
                                                    {.block_m = 64,
                                                     .block_n = 64,
                                                     .schedule = Schedule::basic,
                                                     .split_k = 8,
                                                     .store_buffers = 0,
                                                     .transposed = true},
                                                    {.block_m = 64,
                                                     .block_n = 32,
                                                     .schedule = Schedule::basic,
                                                     .split_k = 2,
                                                     .store_buffers = 0,
                                                     .transposed = true},
                                                    {.block_m = 64,
                                                     .block_n = 16,
                                                     .schedule = Schedule::basic,
                                                     .cluster_m = 4,
                                                     .store_buffers = 0,
                                                     .transposed = true}};
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
    {.block_m = 64, .block_n = 64, .schedule = Schedule::basic},
    {.block_m = 64, .block_n = 64, .schedule = Schedule::basic, .min_ctas_per_sm = 2},
    {.block_m = 64, .block_n = 96, .schedule = Schedule::basic},
    {.block_m = 64, .block_n = 64, .schedule = Schedule::basic, .split_k = 2},
    {.block_m = 64,
     .block_n = 8,
     .schedule = Schedule::basic,
     .store_buffers = 0,
     .transposed = true},
    {.block_m = 64,
     .block_n = 16,
     .schedule = Schedule::basic,
     .store_buffers = 0,
     .transposed = true},
    {.block_m = 128,
     .block_n = 32,
     .schedule = Schedule::basic,
     .store_buffers = 1,
     .transposed = true},
    {.block_m = 64,
     .block_n = 16,
     .schedule = Schedule::basic,
     .split_k = 2,
     .store_buffers = 0,
     .min_ctas_per_sm = 2,
     .transposed = true},
    {.block_m = 64,
     .block_n = 32,
     .schedule = Schedule::basic,
     .split_k = 4,
     .store_buffers = 0,
     .min_ctas_per_sm = 2,
     .transposed = true},
    {.block_m = 64,
     .block_n = 64,
     .schedule = Schedule::basic,
     .split_k = 8,
     .store_buffers = 0,
     .transposed = true},
    {.block_m = 64,
     .block_n = 16,
     .schedule = Schedule::basic,
     .store_buffers = 0,
     .min_ctas_per_sm = 2,
     .transposed = true},
    {.block_m = 64,
     .block_n = 64,
     .schedule = Schedule::basic,
     .split_k = 4,
     .store_buffers = 0,
     .transposed = true},
    {.block_m = 128, .block_n = 80, .schedule = Schedule::cooperative, .transposed = true},
    {.block_m = 128, .block_n = 96, .schedule = Schedule::cooperative, .transposed = true},
    {.block_m = 128, .block_n = 144, .schedule = Schedule::cooperative, .transposed = true},
    {.block_m = 128, .block_n = 160, .schedule = Schedule::cooperative},
    {.block_m = 64, .block_n = 96, .schedule = Schedule::basic, .split_k = 3},
    {.block_m = 64,
     .block_n = 32,
     .schedule = Schedule::basic,
     .split_k = 2,
     .store_buffers = 0,
     .transposed = true},
    {.block_m = 64,
     .block_n = 32,
     .schedule = Schedule::basic,
     .split_k = 4,
     .store_buffers = 0,
     .transposed = true},
    {.block_m = 192, .block_n = 192, .schedule = Schedule::cooperative, .store_buffers = 1},
    {.block_m = 192, .block_n = 144, .schedule = Schedule::cooperative, .cluster_n = 2},
    {.block_m = 192, .block_n = 128, .schedule = Schedule::cooperative, .store_buffers = 1},
    {.block_m = 128, .block_n = 80, .schedule = Schedule::cooperative, .cluster_n = 2},
    {.block_m = 128, .block_n = 208, .schedule = Schedule::cooperative, .transposed = true},
    {.block_m = 128,
     .block_n = 104,
     .schedule = Schedule::cooperative,
     .cluster_n = 2,
     .transposed = true},
    {.block_m = 64, .block_n = 96, .schedule = Schedule::basic, .cluster_m = 4},
    {.block_m = 64,
     .block_n = 80,
     .schedule = Schedule::basic,
     .cluster_m = 4,
     .transposed = true}};

/// Of both: tiles that fill the device once, then tiles whose K is shared. Most were picked from 98
/// that were timed at 60 problems of bf16, most of which have a D of few tiles (decision 153),
/// three from some fifty (decision 166), four from forty (decision 169), sixteen from 140
/// (decision 171), 34 from some 105 (decision 175), 29 from 64 (decision 177), and two from 49
/// (decision 179).
inline constexpr GemmSm90Config filling_tiles[] = {
    {.block_m = 128,
     .block_n = 104,
     .schedule = Schedule::cooperative,
     .cluster_n = 4,
     .transposed = true},
    {.block_m = 64,
     .block_n = 104,
     .schedule = Schedule::basic,
     .cluster_m = 4,
     .transposed = true},
    {.block_m = 192,
     .block_n = 144,
     .schedule = Schedule::cooperative,
     .cluster_n = 2,
     .store_buffers = 1,
     .transposed = true},
    {.block_m = 192,
     .block_n = 160,
     .schedule = Schedule::cooperative,
     .cluster_n = 2,
     .store_buffers = 1,
     .transposed = true},
    {.block_m = 256,
     .block_n = 160,
     .schedule = Schedule::cooperative,
     .cluster_n = 2,
     .store_buffers = 1,
     .transposed = true},
    {.block_m = 128,
     .block_n = 144,
     .schedule = Schedule::cooperative,
     .cluster_n = 2,
     .transposed = true},
    {.block_m = 192,
     .block_n = 144,
     .schedule = Schedule::cooperative,
     .cluster_m = 4,
     .cluster_n = 2,
     .store_buffers = 1,
     .transposed = true},
    {.block_m = 192,
     .block_n = 80,
     .schedule = Schedule::cooperative,
     .cluster_m = 2,
     .cluster_n = 2,
     .transposed = true},
    {.block_m = 64,
     .block_n = 168,
     .schedule = Schedule::basic,
     .cluster_m = 4,
     .transposed = true},
    {.block_m = 128,
     .block_n = 224,
     .schedule = Schedule::cooperative,
     .cluster_m = 4,
     .transposed = true},
    {.block_m = 64, .block_n = 112, .schedule = Schedule::basic, .cluster_m = 4, .cluster_n = 2},
    {.block_m = 128, .block_n = 80, .schedule = Schedule::cooperative, .cluster_n = 4},
    {.block_m = 64,
     .block_n = 184,
     .schedule = Schedule::basic,
     .cluster_m = 2,
     .cluster_n = 4,
     .transposed = true},
    {.block_m = 128,
     .block_n = 152,
     .schedule = Schedule::cooperative,
     .cluster_m = 2,
     .transposed = true},
    {.block_m = 128, .block_n = 120, .schedule = Schedule::pingpong, .transposed = true},
    {.block_m = 128, .block_n = 168, .schedule = Schedule::pingpong, .transposed = true},
    {.block_m = 128,
     .block_n = 144,
     .schedule = Schedule::pingpong,
     .cluster_m = 2,
     .transposed = true},
    {.block_m = 128,
     .block_n = 176,
     .schedule = Schedule::pingpong,
     .cluster_m = 2,
     .transposed = true},
    {.block_m = 128,
     .block_n = 184,
     .schedule = Schedule::pingpong,
     .cluster_m = 2,
     .transposed = true},
    {.block_m = 128,
     .block_n = 192,
     .schedule = Schedule::pingpong,
     .cluster_m = 2,
     .transposed = true},
    {.block_m = 128,
     .block_n = 152,
     .schedule = Schedule::pingpong,
     .cluster_m = 4,
     .transposed = true},
    {.block_m = 128,
     .block_n = 176,
     .schedule = Schedule::pingpong,
     .cluster_m = 2,
     .cluster_n = 4},
    {.block_m = 128,
     .block_n = 32,
     .schedule = Schedule::cooperative,
     .cluster_m = 4,
     .transposed = true},
    {.block_m = 128, .block_n = 200, .schedule = Schedule::cooperative, .transposed = true},
    {.block_m = 128,
     .block_n = 240,
     .schedule = Schedule::cooperative,
     .cluster_m = 2,
     .transposed = true},
    {.block_m = 192,
     .block_n = 136,
     .schedule = Schedule::cooperative,
     .cluster_m = 2,
     .cluster_n = 4,
     .store_buffers = 1,
     .transposed = true},
    {.block_m = 192,
     .block_n = 200,
     .schedule = Schedule::cooperative,
     .cluster_n = 2,
     .store_buffers = 1,
     .transposed = true},
    {.block_m = 64, .block_n = 40, .schedule = Schedule::basic, .transposed = true},
    {.block_m = 64, .block_n = 80, .schedule = Schedule::basic},
    {.block_m = 192,
     .block_n = 112,
     .schedule = Schedule::cooperative,
     .cluster_n = 2,
     .store_buffers = 1},
    {.block_m = 192,
     .block_n = 96,
     .schedule = Schedule::cooperative,
     .cluster_n = 2,
     .store_buffers = 1},
    {.block_m = 192,
     .block_n = 112,
     .schedule = Schedule::cooperative,
     .store_buffers = 1,
     .transposed = true},
    {.block_m = 256,
     .block_n = 152,
     .schedule = Schedule::cooperative,
     .store_buffers = 1,
     .transposed = true},
    {.block_m = 128, .block_n = 240, .schedule = Schedule::cooperative},
    {.block_m = 128, .block_n = 104, .schedule = Schedule::cooperative, .transposed = true},
    {.block_m = 64, .block_n = 112, .schedule = Schedule::basic},
    {.block_m = 64, .block_n = 120, .schedule = Schedule::basic, .transposed = true},
    {.block_m = 64, .block_n = 40, .schedule = Schedule::basic, .cluster_m = 4, .transposed = true},
    {.block_m = 64,
     .block_n = 152,
     .schedule = Schedule::basic,
     .cluster_m = 4,
     .transposed = true},
    {.block_m = 192, .block_n = 160, .schedule = Schedule::cooperative, .cluster_m = 2},
    // For rows that begin inside of lines of L2, of which more CTAs take what is read once.
    {.block_m = 64,
     .block_n = 88,
     .schedule = Schedule::basic,
     .cluster_m = 2,
     .cluster_n = 4,
     .transposed = true},
    {.block_m = 192,
     .block_n = 80,
     .schedule = Schedule::cooperative,
     .cluster_n = 4,
     .transposed = true},
    {.block_m = 128,
     .block_n = 112,
     .schedule = Schedule::cooperative,
     .cluster_m = 4,
     .cluster_n = 2,
     .transposed = true},
    {.block_m = 256,
     .block_n = 144,
     .schedule = Schedule::cooperative,
     .cluster_n = 2,
     .store_buffers = 1,
     .transposed = true},
    {.block_m = 64, .block_n = 80, .schedule = Schedule::basic, .transposed = true},
    {.block_m = 64, .block_n = 96, .schedule = Schedule::basic, .transposed = true},
    {.block_m = 128, .block_n = 88, .schedule = Schedule::cooperative, .transposed = true},
    {.block_m = 128, .block_n = 112, .schedule = Schedule::cooperative, .transposed = true},
    {.block_m = 128, .block_n = 168, .schedule = Schedule::cooperative, .transposed = true},
    {.block_m = 128, .block_n = 192, .schedule = Schedule::cooperative},
    // In clusters of eight.
    {.block_m = 64, .block_n = 64, .schedule = Schedule::basic, .cluster_m = 2, .cluster_n = 4},
    {.block_m = 64, .block_n = 112, .schedule = Schedule::basic, .cluster_m = 2, .cluster_n = 4},
    {.block_m = 64,
     .block_n = 88,
     .schedule = Schedule::basic,
     .cluster_m = 4,
     .cluster_n = 2,
     .transposed = true},
    {.block_m = 64,
     .block_n = 112,
     .schedule = Schedule::basic,
     .cluster_m = 4,
     .cluster_n = 2,
     .transposed = true},
    {.block_m = 128,
     .block_n = 80,
     .schedule = Schedule::cooperative,
     .cluster_m = 2,
     .cluster_n = 4},
    {.block_m = 128,
     .block_n = 160,
     .schedule = Schedule::cooperative,
     .cluster_m = 4,
     .cluster_n = 2},
    {.block_m = 192,
     .block_n = 192,
     .schedule = Schedule::cooperative,
     .cluster_m = 4,
     .cluster_n = 2,
     .store_buffers = 1},
    // Those that peers have where others lost, and some of a lattice of 1,021 tiles and clusters.
    {.block_m = 128,
     .block_n = 208,
     .schedule = Schedule::cooperative,
     .cluster_m = 4,
     .cluster_n = 2},
    {.block_m = 128,
     .block_n = 128,
     .schedule = Schedule::cooperative,
     .cluster_m = 4,
     .cluster_n = 2},
    {.block_m = 128, .block_n = 112, .schedule = Schedule::cooperative, .cluster_m = 4},
    {.block_m = 64, .block_n = 144, .schedule = Schedule::basic, .cluster_m = 4},
    {.block_m = 128, .block_n = 208, .schedule = Schedule::cooperative, .cluster_m = 2},
    {.block_m = 64,
     .block_n = 8,
     .schedule = Schedule::basic,
     .cluster_m = 4,
     .store_buffers = 0,
     .transposed = true},
    {.block_m = 128,
     .block_n = 192,
     .schedule = Schedule::cooperative,
     .cluster_m = 4,
     .cluster_n = 2},
    {.block_m = 256,
     .block_n = 136,
     .schedule = Schedule::cooperative,
     .cluster_n = 2,
     .store_buffers = 1,
     .transposed = true},
    {.block_m = 128,
     .block_n = 16,
     .schedule = Schedule::cooperative,
     .store_buffers = 0,
     .transposed = true},
    {.block_m = 64, .block_n = 32, .schedule = Schedule::basic},
    {.block_m = 256,
     .block_n = 136,
     .schedule = Schedule::cooperative,
     .store_buffers = 1,
     .transposed = true},
    {.block_m = 192,
     .block_n = 160,
     .schedule = Schedule::cooperative,
     .cluster_m = 4,
     .cluster_n = 2,
     .transposed = true},
    {.block_m = 128, .block_n = 24, .schedule = Schedule::cooperative, .transposed = true},
    {.block_m = 128,
     .block_n = 176,
     .schedule = Schedule::cooperative,
     .cluster_m = 4,
     .cluster_n = 2,
     .transposed = true},
    {.block_m = 128, .block_n = 80, .schedule = Schedule::cooperative},
    {.block_m = 64, .block_n = 112, .schedule = Schedule::basic, .cluster_n = 4},
    {.block_m = 192,
     .block_n = 184,
     .schedule = Schedule::cooperative,
     .cluster_n = 2,
     .store_buffers = 1,
     .transposed = true},
    {.block_m = 192,
     .block_n = 128,
     .schedule = Schedule::cooperative,
     .cluster_n = 2,
     .store_buffers = 1},
    {.block_m = 64, .block_n = 48, .schedule = Schedule::basic},
    {.block_m = 128, .block_n = 80, .schedule = Schedule::cooperative, .cluster_m = 4},
    {.block_m = 128,
     .block_n = 56,
     .schedule = Schedule::cooperative,
     .store_buffers = 1,
     .transposed = true},
    {.block_m = 128,
     .block_n = 224,
     .schedule = Schedule::cooperative,
     .cluster_m = 2,
     .transposed = true},
    {.block_m = 128, .block_n = 64, .schedule = Schedule::cooperative, .cluster_n = 4},
    {.block_m = 128, .block_n = 112, .schedule = Schedule::cooperative},
    {.block_m = 128, .block_n = 96, .schedule = Schedule::cooperative, .cluster_m = 2},
    {.block_m = 128, .block_n = 112, .schedule = Schedule::cooperative, .cluster_m = 2},
    {.block_m = 128, .block_n = 144, .schedule = Schedule::cooperative, .cluster_m = 2},
    {.block_m = 64, .block_n = 72, .schedule = Schedule::basic, .cluster_m = 4, .transposed = true},
    // K is shared from here on. The last, for a long K, was not among those timed.
    {.block_m = 128,
     .block_n = 192,
     .schedule = Schedule::cooperative,
     .cluster_m = 2,
     .split_k = 2},
    {.block_m = 64,
     .block_n = 144,
     .schedule = Schedule::basic,
     .cluster_m = 2,
     .split_k = 2,
     .transposed = true},
    {.block_m = 64,
     .block_n = 128,
     .schedule = Schedule::basic,
     .cluster_m = 2,
     .split_k = 4,
     .store_buffers = 0,
     .transposed = true},
    {.block_m = 64,
     .block_n = 96,
     .schedule = Schedule::basic,
     .split_k = 4,
     .store_buffers = 0,
     .transposed = true}};

/// Of both, for a long K and few tiles: any number of clusters share a tile (decision 172).
inline constexpr GemmSm90Config tiles_in_parts[] = {
    {.block_m = 128,
     .block_n = 112,
     .schedule = Schedule::cooperative,
     .cluster_m = 4,
     .cluster_n = 2,
     .in_parts = true},
    {.block_m = 256,
     .block_n = 112,
     .schedule = Schedule::cooperative,
     .cluster_n = 2,
     .in_parts = true},
    {.block_m = 128,
     .block_n = 48,
     .schedule = Schedule::cooperative,
     .cluster_m = 2,
     .cluster_n = 4,
     .in_parts = true,
     .store_buffers = 0,
     .transposed = true},
    {.block_m = 64, .block_n = 144, .schedule = Schedule::basic, .cluster_m = 2, .in_parts = true},
    {.block_m = 64,
     .block_n = 72,
     .schedule = Schedule::basic,
     .cluster_m = 4,
     .cluster_n = 2,
     .in_parts = true,
     .store_buffers = 0,
     .transposed = true},
    {.block_m = 64,
     .block_n = 32,
     .schedule = Schedule::basic,
     .in_parts = true,
     .store_buffers = 0,
     .transposed = true},
    {.block_m = 64, .block_n = 96, .schedule = Schedule::basic, .cluster_m = 4, .in_parts = true},
    {.block_m = 128,
     .block_n = 128,
     .schedule = Schedule::cooperative,
     .cluster_m = 2,
     .in_parts = true},
    {.block_m = 128,
     .block_n = 160,
     .schedule = Schedule::cooperative,
     .cluster_m = 4,
     .cluster_n = 2,
     .in_parts = true,
     .store_buffers = 0,
     .transposed = true}};

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
  return table_of<GemmSm90Config>([](auto add) { list_gemm_sm90(add); });
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
    if (c.in_parts) return c.a == DType::bf16 && c.block_n == (small ? 96 : 160);
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
           (small && c.split_k == (c.block_n == 96 && c.cluster_m == 2 ? 2 : 4)) ||
           (small && c.block_n == 64 && cluster_size(c) * c.min_ctas_per_sm == 1) ||
           c.block_m == 256 || (c.block_m == 192 && c.block_n == 144) || c.narrow_n == 160;
  }
};

}  // namespace tegula
