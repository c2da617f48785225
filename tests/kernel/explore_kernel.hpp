#pragma once

#include <cstring>

#include "attention_problem.hpp"
#include "gemm_sm90_problem.hpp"
#include "tegula/sim/explore.hpp"

namespace tegula {

/// Explores what `run`, which returns the bytes of the result, launches on a simulated machine.
inline sim::Exploration explore(Machine const& machine,
                                std::function<std::vector<std::uint8_t>()> const& run,
                                std::int64_t max_executions = 20) {
  std::vector<std::uint8_t> output;
  auto const result = [&] {
    std::vector<std::byte> bytes(output.size());
    std::memcpy(bytes.data(), output.data(), output.size());
    return bytes;
  };
  return sim::explore(*machine.simulation(), [&] { output = run(); },
                      {.max_executions = max_executions, .result = result});
}

/// A tile for each CTA of a cluster, in two steps of K.
inline GemmProblem smallest_problem(GemmSm90Config const& c) {
  GemmProblem p = problem_for(c);
  p.m = c.block_m * c.cluster_m;
  p.n = c.block_n * c.cluster_n;
  p.k = 2 * block_k(c) * c.split_k;
  return p;
}

/// One CTA, and blocks of keys that come round its two stages more than once.
inline AttentionProblem smallest_problem(AttentionConfig const& c) {
  return {.dtype = c.dtype,
          .head_dim = c.head_dim,
          .seq_q = c.block_m,
          .seq_k = 3 * c.block_n,
          .causal = c.causal,
          .exponential = c.exponential};
}

inline AttentionProblem smallest_problem(AttentionSm90Config const& c) {
  return {.dtype = c.dtype,
          .head_dim = c.head_dim,
          .head_dim_v = c.head_dim_v,
          .seq_q = block_m(c),
          .seq_k = (c.stages + 1) * c.block_n,
          .precise = precise_of(c),
          .exponential = c.exponential};
}

/// Both tiles of rows, and blocks of keys that come round the stages.
inline AttentionProblem smallest_problem(AttentionSm100Config const& c) {
  return {.dtype = c.dtype,
          .out = c.out,
          .head_dim = c.head_dim,
          .head_dim_v = c.head_dim_v,
          .seq_q = block_m(c),
          .seq_k = (c.stages + 1) * c.block_n,
          .exponential = c.exponential};
}

/// One CTA, and three blocks of K.
inline GemmProblem smallest_problem(GemmConfig const& c, int number) {
  return {.in = c.in,
          .out = c.out,
          .a_major = c.a_major,
          .b_major = c.b_major,
          .m = c.block_m,
          .n = c.block_n,
          .k = 3 * c.block_k,
          .padding = c.vector_bytes == 16 ? 0 : 3,
          .constraints = {.kernel = gemm_sm80, .configuration = number}};
}

}  // namespace tegula
