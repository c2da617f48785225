#pragma once

#include <initializer_list>

#include "tegula/kernel/gemm_config.hpp"
#include "tegula/kernel/table.hpp"
#include "tegula/numeric/dtype.hpp"

/// The configurations of gemm_sm80.
namespace tegula {

namespace detail {
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
}  // namespace detail

template <GemmConfig C> struct GemmSm80;

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

}  // namespace tegula
