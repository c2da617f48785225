#pragma once

#include <array>
#include <cstdint>

#include "tegula/kernel/attention_sm80.hpp"
#include "tegula/kernel/gemm_sm80.hpp"
#include "tegula/kernel/gemm_sm90.hpp"

/// The kernels whose mutants run on a GPU, each with the problem it is given. nvcc compiles one of them at a
/// time (mutants_kernel.cu), the host's compiler all of them (mutants_runner.cpp).
namespace tegula::mutants {

enum class Family : std::uint8_t { gemm_sm80, gemm_sm90, attention_sm80 };

/// A kernel's configuration, that of its family, and a problem for it. Rows of K-major A and B are padded to
/// a multiple of 128 bytes, as those of C and D, so that TMA can address them.
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
};

inline constexpr std::array kCases = {
    Case{.name = "gemm_sm80",
         .family = Family::gemm_sm80,
         .sm80 = {.block_m = 64, .block_n = 128, .block_k = 32, .stages = 3, .warps_m = 2, .warps_n = 2},
         .m = 100,
         .n = 136,
         .k = 200},
    Case{.name = "gemm_sm90_basic",
         .family = Family::gemm_sm90,
         .sm90 = {.block_m = 64, .block_n = 64, .schedule = Schedule::basic},
         .m = 100,
         .n = 136,
         .k = 1000},
    Case{.name = "gemm_sm90_pingpong",
         .family = Family::gemm_sm90,
         .sm90 = {.block_m = 64, .block_n = 128, .schedule = Schedule::pingpong, .cluster_m = 2},
         .m = 256,
         .n = 264,
         .k = 600,
         .adds = true},
    Case{.name = "gemm_sm90_split",
         .family = Family::gemm_sm90,
         .sm90 = {.block_m = 64, .block_n = 64, .schedule = Schedule::basic, .split_k = 2},
         .m = 60,
         .n = 64,
         .k = 600},
    Case{.name = "attention_sm80",
         .family = Family::attention_sm80,
         .attention = {.head_dim = 64, .block_m = 64, .block_n = 32, .causal = true},
         .m = 100,
         .n = 150},
};

template <int I, Family F = kCases[I].family> struct KernelOf;
template <int I> struct KernelOf<I, Family::gemm_sm80> : GemmSm80<kCases[I].sm80> {};
template <int I> struct KernelOf<I, Family::gemm_sm90> : GemmSm90<kCases[I].sm90> {};
template <int I> struct KernelOf<I, Family::attention_sm80> : AttentionSm80<kCases[I].attention> {};

}  // namespace tegula::mutants
