#pragma once

#include <array>
#include <cstdint>

#include "elements.hpp"
#include "tegula/device/arguments.hpp"
#include "tegula/kernel/attention_sm80.hpp"
#include "tegula/kernel/gemm_sm80.hpp"
#include "tegula/kernel/gemm_sm90.hpp"

/// The kernels that are mutated, on the simulated machine (mutate.cpp) and on a GPU
/// (bench/gpu/mutants.py), each with the smallest problem that executes its statements, those of
/// ragged edges and of a ring's second round among them.
namespace tegula::mutants {

enum class Family : std::uint8_t { gemm_sm80, gemm_sm90, attention_sm80 };

/// A kernel's configuration, that of its family, and a problem for it.
struct Case {
  char const* name;
  Family family;
  GemmConfig sm80 = {};
  GemmSm90Config sm90 = {};
  AttentionConfig attention = {};
  int m = 1, n = 1, k = 1, batch = 1;  ///< attention: rows of Q, keys, unused, batches
  int heads = 1, kv_heads = 1;
  bool adds = false;  ///< beta = 0.5 and a bias
  int clusters = 1;   ///< of gemm_sm90's grid
  int parts = 1;      ///< of K, likewise
};

inline constexpr GemmConfig kSmallSm80 = {
    .block_m = 64, .block_n = 64, .block_k = 32, .stages = 3, .warps_m = 2, .warps_n = 1};

inline constexpr std::array kCases = {
    Case{.name = "gemm_sm80",
         .family = Family::gemm_sm80,
         .sm80 = kSmallSm80,
         .m = 70,
         .n = 76,
         .k = 152},
    Case{.name = "gemm_sm80_adds",
         .family = Family::gemm_sm80,
         .sm80 = kSmallSm80,
         .m = 70,
         .n = 79,
         .k = 40,
         .adds = true},
    Case{.name = "gemm_sm80_elements",
         .family = Family::gemm_sm80,
         .sm80 = {.block_m = 64,
                  .block_n = 64,
                  .block_k = 32,
                  .stages = 3,
                  .warps_m = 2,
                  .warps_n = 1,
                  .vector_bytes = 2},
         .m = 20,
         .n = 36,
         .k = 149},
    Case{.name = "gemm_sm90_basic",
         .family = Family::gemm_sm90,
         .sm90 = {.block_m = 64, .block_n = 64, .schedule = Schedule::basic},
         .m = 100,
         .n = 136,
         .k = 200},
    Case{.name = "gemm_sm90_adds",
         .family = Family::gemm_sm90,
         .sm90 = {.block_m = 64, .block_n = 64, .schedule = Schedule::basic},
         .m = 100,
         .n = 131,
         .k = 72,
         .adds = true},
    Case{.name = "gemm_sm90_f32_mn",
         .family = Family::gemm_sm90,
         .sm90 = {.out = DType::f32,
                  .a_major = Major::mn,
                  .b_major = Major::mn,
                  .block_m = 64,
                  .block_n = 64,
                  .schedule = Schedule::basic},
         .m = 104,
         .n = 72,
         .k = 72,
         .adds = true},
    Case{.name = "gemm_sm90_cooperative_2x1",
         .family = Family::gemm_sm90,
         .sm90 = {.block_m = 128, .block_n = 192, .cluster_m = 2},
         .m = 300,
         .n = 200,
         .k = 136},
    Case{.name = "gemm_sm90_cooperative_1x2",
         .family = Family::gemm_sm90,
         .sm90 = {.block_m = 128, .block_n = 64, .cluster_n = 2},
         .m = 136,
         .n = 136,
         .k = 200},
    Case{.name = "gemm_sm90_pingpong_2x1",
         .family = Family::gemm_sm90,
         .sm90 = {.block_m = 64, .block_n = 128, .schedule = Schedule::pingpong, .cluster_m = 2},
         .m = 120,
         .n = 264,
         .k = 584,
         .batch = 3,
         .adds = true},
    Case{.name = "gemm_sm90_transposed",
         .family = Family::gemm_sm90,
         .sm90 = {.block_m = 64, .block_n = 136, .schedule = Schedule::basic, .transposed = true},
         .m = 104,
         .n = 150,
         .k = 200},
    // D leaves through a stage that a peer loads into after that.
    Case{.name = "gemm_sm90_lends",
         .family = Family::gemm_sm90,
         .sm90 = {.block_m = 64,
                  .block_n = 64,
                  .schedule = Schedule::basic,
                  .cluster_n = 2,
                  .store_buffers = kLastStage},
         .m = 100,
         .n = 259,
         .k = 200,
         .adds = true},
    Case{.name = "gemm_sm90_lends_transposed",
         .family = Family::gemm_sm90,
         .sm90 = {.block_m = 128,
                  .block_n = 72,
                  .cluster_n = 2,
                  .store_buffers = kLastStage,
                  .transposed = true},
         .m = 136,
         .n = 200,
         .k = 328},
    Case{.name = "gemm_sm90_split",
         .family = Family::gemm_sm90,
         .sm90 = {.block_m = 64, .block_n = 64, .schedule = Schedule::basic, .split_k = 2},
         .m = 60,
         .n = 64,
         .k = 1700},
    Case{.name = "gemm_sm90_parts",
         .family = Family::gemm_sm90,
         .sm90 = {.block_m = 64, .block_n = 64, .schedule = Schedule::basic, .in_parts = true},
         .m = 60,
         .n = 64,
         .k = 400,
         .clusters = 3,
         .parts = 3},
    // One cluster has parts of two tiles, and does not wait for the first of them.
    Case{.name = "gemm_sm90_parts_of_two_tiles",
         .family = Family::gemm_sm90,
         .sm90 = {.block_m = 64, .block_n = 64, .schedule = Schedule::basic, .in_parts = true},
         .m = 124,
         .n = 64,
         .k = 400,
         .clusters = 3,
         .parts = 2},
    Case{.name = "attention_sm80",
         .family = Family::attention_sm80,
         .attention = {.head_dim = 32, .block_m = 64, .block_n = 32},
         .m = 70,
         .n = 100,
         .heads = 2},
    Case{.name = "attention_sm80_causal",
         .family = Family::attention_sm80,
         .attention = {.head_dim = 32, .block_m = 64, .block_n = 32, .causal = true},
         .m = 70,
         .n = 100},
};

/// The arguments of a case of a GEMM, without pointers: rows are whole lines of `line_bytes` apart.
inline GemmArguments gemm_arguments(Case const& c, int line_bytes) {
  bool const sm80 = c.family == Family::gemm_sm80;
  DType const in = sm80 ? c.sm80.in : c.sm90.a, out = sm80 ? c.sm80.out : c.sm90.out;
  Major const a_major = sm80 ? c.sm80.a_major : c.sm90.a_major;
  Major const b_major = sm80 ? c.sm80.b_major : c.sm90.b_major;
  bool const a_k = a_major == Major::k, b_k = b_major == Major::k;
  std::int64_t const lda = whole_lines(a_k ? c.k : c.m, in, line_bytes);
  std::int64_t const ldb = whole_lines(b_k ? c.k : c.n, in, line_bytes);
  bool const transposed = !sm80 && c.sm90.transposed;  // D's columns are contiguous
  std::int64_t const ldd = whole_lines(transposed ? c.m : c.n, out, line_bytes);
  return {.in = in,
          .in_b = in,
          .out = out,
          .a_major = a_major,
          .b_major = b_major,
          .m = c.m,
          .n = c.n,
          .k = c.k,
          .batch = c.batch,
          .lda = lda,
          .ldb = ldb,
          .ldc = ldd,
          .ldd = ldd,
          .a_batch_stride = lda * (a_k ? c.m : c.k),
          .b_batch_stride = ldb * (b_k ? c.n : c.k),
          .c_batch_stride = ldd * c.m,
          .d_batch_stride = ldd * (transposed ? c.n : c.m),
          .beta = c.adds ? 0.5f : 0.0f};
}

template <int I, Family F = kCases[I].family> struct KernelOf;
template <int I> struct KernelOf<I, Family::gemm_sm80> : GemmSm80<kCases[I].sm80> {};
template <int I> struct KernelOf<I, Family::gemm_sm90> : GemmSm90<kCases[I].sm90> {};
template <int I> struct KernelOf<I, Family::attention_sm80> : AttentionSm80<kCases[I].attention> {};

}  // namespace tegula::mutants
