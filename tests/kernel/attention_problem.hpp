#pragma once

#include <gtest/gtest.h>

#include <functional>

#include "tegula/device/launch.hpp"
#include "tegula/device/reference.hpp"
#include "tegula/device/selection.hpp"
#include "test_machine.hpp"

namespace tegula {

/// An attention problem with its tensors in memory of a machine: (batch, seq, heads, head_dim) with `padding`
/// unused elements after each token, or, `head_major`, (batch, heads, seq, head_dim).
struct AttentionProblem {
  DType dtype = DType::bf16;
  int head_dim = 64;
  int batch = 1, heads = 1, kv_heads = 1;
  int seq_q = 1, seq_k = 1;
  bool causal = false;
  Exponential exponential = Exponential::ex2_approx;
  bool head_major = false;
  int padding = 0;
  std::uint64_t seed = 1;
  std::function<float(std::mt19937_64&)> q = normal, k = normal, v = normal;

  TokenStrides strides(int seq, int n_heads) const {
    std::int64_t const row = head_dim + padding;
    if (head_major) return {n_heads * seq * row, row, seq * row};
    return {seq * n_heads * row, n_heads * row, row};
  }
};

/// What a machine made of a problem.
struct AttentionResult {
  std::vector<std::uint8_t> o;  ///< all bytes of the output tensor
  std::vector<float> lse;
  std::vector<std::uint8_t> q, k, v;
  AttentionArguments host;  ///< the arguments with pointers to q, k, v here
};

/// Runs a problem by `launch(arguments)`.
template <class Launch>
AttentionResult run_by(Machine const& machine, AttentionProblem const& p, Launch launch) {
  AttentionResult r;
  auto const elements = [&](int seq, int n_heads) { return p.strides(seq, n_heads).batch * p.batch; };
  r.q = random_elements(p.dtype, elements(p.seq_q, p.heads), 3 * p.seed, p.q);
  r.k = random_elements(p.dtype, elements(p.seq_k, p.kv_heads), 3 * p.seed + 1, p.k);
  r.v = random_elements(p.dtype, elements(p.seq_k, p.kv_heads), 3 * p.seed + 2, p.v);
  Buffer<std::uint8_t> const q(machine, r.q, "q"), k(machine, r.k, "k"), v(machine, r.v, "v");
  auto const o = poisoned(machine, static_cast<std::int64_t>(r.q.size()), "o");
  Buffer<float> lse(machine, std::int64_t{p.batch} * p.heads * p.seq_q, "lse");
  lse.fill(kPoison);
  AttentionArguments a{.dtype = p.dtype,
                       .q = q.data(),
                       .k = k.data(),
                       .v = v.data(),
                       .o = o.data(),
                       .lse = lse.data(),
                       .batch = p.batch,
                       .heads = p.heads,
                       .kv_heads = p.kv_heads,
                       .seq_q = p.seq_q,
                       .seq_k = p.seq_k,
                       .head_dim = p.head_dim,
                       .q_stride = p.strides(p.seq_q, p.heads),
                       .k_stride = p.strides(p.seq_k, p.kv_heads),
                       .v_stride = p.strides(p.seq_k, p.kv_heads),
                       .o_stride = p.strides(p.seq_q, p.heads),
                       .causal = p.causal,
                       .exponential = p.exponential};
  launch(a);
  machine.synchronize();
  r.o = o.download();
  r.lse = lse.download();
  a.q = r.q.data(), a.k = r.k.data(), a.v = r.v.data();
  r.host = a;
  return r;
}

/// Runs a problem by the configuration that is chosen for it.
inline AttentionResult run(Machine const& machine, AttentionProblem const& p) {
  return run_by(machine, p, [&](AttentionArguments const& a) { attention(machine, a); });
}

/// All rows of O, as reference::attention numbers them.
inline std::vector<std::int64_t> rows_of(AttentionProblem const& p) {
  std::int64_t const count = std::int64_t{p.batch} * p.heads * p.seq_q;
  return reference::some_rows(count, count);
}

/// Holds every element of O and of the log-sum-exp against the exact ones, and every byte around O against
/// the poison.
inline void expect_near(AttentionProblem const& p, AttentionResult const& r,
                        reference::Attention const& exact) {
  TokenStrides const s = *r.host.o_stride;
  std::vector<double> o, lse(r.lse.begin(), r.lse.end());
  std::vector<bool> belongs(r.o.size());
  std::size_t const width = static_cast<std::size_t>(bits(p.dtype) / 8);
  for (int b = 0; b < p.batch; ++b) {
    for (int h = 0; h < p.heads; ++h) {
      for (int i = 0; i < p.seq_q; ++i) {
        for (int d = 0; d < p.head_dim; ++d) {
          std::int64_t const at = b * s.batch + h * s.head + i * s.seq + d;
          o.push_back(reference::element(r.o.data(), p.dtype, at));
          for (std::size_t byte = 0; byte < width; ++byte)
            belongs[static_cast<std::size_t>(at) * width + byte] = true;
        }
      }
    }
  }
  auto const name = [&] {
    return std::string(to_string(p.dtype)) + " d" + std::to_string(p.head_dim) + " q" +
           std::to_string(p.seq_q) + " k" + std::to_string(p.seq_k) + (p.causal ? " causal" : "");
  };
  auto const of_o = reference::compare(o, exact.o, reference::largest_finite(p.dtype));
  auto const of_lse = reference::compare(lse, exact.lse, reference::largest_finite(DType::f32));
  EXPECT_TRUE(of_o.within()) << name() << ": element " << of_o.worst << " of O is " << of_o.worst_result
                             << ", not " << exact.o.value[static_cast<std::size_t>(of_o.worst)] << ": "
                             << of_o.max_ratio << " times the bound";
  EXPECT_TRUE(of_lse.within()) << name() << ": row " << of_lse.worst << "'s log-sum-exp is "
                               << of_lse.worst_result << ", not "
                               << exact.lse.value[static_cast<std::size_t>(of_lse.worst)] << ": "
                               << of_lse.max_ratio << " times the bound";
  for (std::size_t i = 0; i < r.o.size(); ++i) {
    if (!belongs[i] && r.o[i] != kPoison) {
      ADD_FAILURE() << name() << ": byte " << i << " between the rows of O was written";
      break;
    }
  }
}

/// Runs a problem and holds its result against float64.
inline AttentionResult expect_correct(Machine const& machine, AttentionProblem const& p) {
  AttentionResult r = run(machine, p);
  expect_near(p, r, reference::attention(r.host, rows_of(p)));
  return r;
}

}  // namespace tegula
