#pragma once

/// The problem of `tegula attention`: its options, and the operands that they name or leave out.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attention_sequences.hpp"
#include "kernel_run.hpp"
#include "tegula/device/arguments.hpp"

namespace tegula::tool {

struct AttentionOptions {
  MachineOptions machine;
  std::string q, k, v, sink, q_descale, k_descale, v_descale, output, lse;
  // As the files say, or the default, where the command line does not say it.
  Extent batch{"batch", "--batch"}, heads{"heads", "--heads"}, kv_heads{"kv_heads", "--kv-heads"},
      seq_q{"seq_q", "--seq-q"}, seq_k{"seq_k", "--seq-k"}, head_dim{"head_dim", "--head-dim"},
      head_dim_v{"head_dim_v", "--head-dim-v"};
  std::optional<std::string> dtype, out_type;
  std::string layout = "bshd", exponential = "ex2";
  std::optional<float> scale;    // 1 / sqrt(head_dim)
  std::optional<float> softcap;  // none
  std::optional<int> window_left, window_right;
  std::optional<int> splits;  // as many as are best
  SequenceOptions sequences;
  bool causal = false, fast_sums = false, json = false, lines = false, explain = false;
  int repeat = 1;
  struct {
    std::string kernel;
    std::optional<int> configuration;
  } choice;
};

/// The operands as the kernels and the reference read them; those of no file have no
/// data until generate_missing, and without a sink that stays so.
struct AttentionProblem {
  Operand q, k, v, k_new, v_new, sink;
  Operand q_descale, k_descale, v_descale;
  std::vector<std::int64_t> shape_of_o;
  std::shared_ptr<Sequences const> sequences;
  AttentionArguments arguments;  ///< with defaults; of pointers, those to `sequences`
  std::vector<Said> extents;     ///< who said them
};

AttentionProblem read_problem(AttentionOptions o, int compute_capability);

/// The arguments with the operands at these addresses; null for a sink and for factors that the
/// problem does not have.
struct AttentionAddresses {
  void const *q, *k, *v, *k_new, *v_new, *sink, *q_descale, *k_descale, *v_descale;
  void *o, *lse;
};
AttentionArguments with_addresses(AttentionProblem const& p, AttentionAddresses const& at);

}  // namespace tegula::tool
