#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <vector>

#include "tegula/device/launch.hpp"
#include "tegula/device/reference.hpp"
#include "tegula/device/selection.hpp"
#include "test_machine.hpp"

namespace tegula {

/// An attention problem with its tensors in memory of a machine: (batch, seq, heads, head_dim) with
/// `padding` unused elements after each token, or, `head_major`, (batch, heads, seq, head_dim).
struct AttentionProblem {
  DType dtype = DType::bf16;
  std::optional<DType> out = {};  ///< of O; none: default_output(dtype)
  int head_dim = 64;
  int head_dim_v = 0;  ///< 0: head_dim
  int batch = 1, heads = 1, kv_heads = 1;
  int seq_q = 1, seq_k = 1;
  bool causal = false;
  std::optional<std::int64_t> window_left = {}, window_right = {};
  float softcap = 0;
  std::vector<float> sink = {};  ///< one for each head, or none
  /// Factors of e4m3: one for each batch and head of keys, or one for the whole tensor, or none.
  std::vector<float> q_descale = {}, k_descale = {}, v_descale = {};
  std::optional<bool> precise = {};
  Exponential exponential = Exponential::ex2_approx;
  bool head_major = false;
  int padding = 0;
  std::uint64_t seed = 1;
  std::function<float(std::mt19937_64&)> q = normal, k = normal, v = normal;

  int dim_v() const { return head_dim_v == 0 ? head_dim : head_dim_v; }
  DType out_type() const { return out.value_or(default_output(dtype)); }
  TokenStrides strides(int seq, int n_heads, int dim) const {
    std::int64_t const row = dim + padding;
    if (head_major) return {n_heads * seq * row, row, seq * row};
    return {seq * n_heads * row, n_heads * row, row};
  }
};

/// What a problem must ask for to be computed by a configuration.
inline std::optional<bool> precise_of(AttentionSm90Config const& c) {
  if (c.dtype != DType::e4m3) return {};
  return c.promoted > 0;
}

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
  TokenStrides const q_stride = p.strides(p.seq_q, p.heads, p.head_dim),
                     k_stride = p.strides(p.seq_k, p.kv_heads, p.head_dim),
                     v_stride = p.strides(p.seq_k, p.kv_heads, p.dim_v()),
                     o_stride = p.strides(p.seq_q, p.heads, p.dim_v());
  r.q = random_elements(p.dtype, q_stride.batch * p.batch, 3 * p.seed, p.q);
  r.k = random_elements(p.dtype, k_stride.batch * p.batch, 3 * p.seed + 1, p.k);
  r.v = random_elements(p.dtype, v_stride.batch * p.batch, 3 * p.seed + 2, p.v);
  Buffer<std::uint8_t> const q(machine, r.q, "q"), k(machine, r.k, "k"), v(machine, r.v, "v");
  auto const o = poisoned(machine, o_stride.batch * p.batch * (bits(p.out_type()) / 8), "o");
  Buffer<float> const sink(machine, p.sink, "sink"), q_descale(machine, p.q_descale, "q_descale"),
      k_descale(machine, p.k_descale, "k_descale"), v_descale(machine, p.v_descale, "v_descale");
  bool const whole = p.q_descale.size() + p.k_descale.size() + p.v_descale.size() <= 3;
  Buffer<float> lse(machine, std::int64_t{p.batch} * p.heads * p.seq_q, "lse");
  lse.fill(kPoison);
  AttentionArguments a{
      .dtype = p.dtype,
      .out = p.out_type(),
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
      .head_dim_v = p.dim_v(),
      .q_stride = q_stride,
      .k_stride = k_stride,
      .v_stride = v_stride,
      .o_stride = o_stride,
      .causal = p.causal,
      .window_left = p.window_left,
      .window_right = p.window_right,
      .softcap = p.softcap,
      .sink = p.sink.empty() ? nullptr : sink.data(),
      .q_descale = p.q_descale.empty() ? nullptr : q_descale.data(),
      .k_descale = p.k_descale.empty() ? nullptr : k_descale.data(),
      .v_descale = p.v_descale.empty() ? nullptr : v_descale.data(),
      .descale_stride = whole ? DescaleStrides{0, 0} : DescaleStrides{p.kv_heads, 1},
      .precise = p.precise,
      .exponential = p.exponential};
  launch(a);
  machine.synchronize();
  r.o = o.download();
  r.lse = lse.download();
  a.q = r.q.data(), a.k = r.k.data(), a.v = r.v.data();
  a.sink = p.sink.empty() ? nullptr : p.sink.data();
  a.q_descale = p.q_descale.empty() ? nullptr : p.q_descale.data();
  a.k_descale = p.k_descale.empty() ? nullptr : p.k_descale.data();
  a.v_descale = p.v_descale.empty() ? nullptr : p.v_descale.data();
  r.host = a;
  return r;
}

/// Runs a problem by the configuration that is chosen for it.
inline AttentionResult run(Machine const& machine, AttentionProblem const& p) {
  return run_by(machine, p, [&](AttentionArguments const& a) { attention(machine, a); });
}

/// The same by a kernel of this family.
inline AttentionResult run_on(FamilyId family, Machine const& machine, AttentionProblem const& p,
                              std::optional<int> configuration = {}) {
  return run_by(machine, p, [&](AttentionArguments const& a) {
    check(a, machine.compute_capability());
    attention(machine, a, choose_attention(a, machine.properties(), {family, configuration}));
  });
}

/// All rows of O, as reference::attention numbers them.
inline std::vector<std::int64_t> rows_of(AttentionProblem const& p) {
  std::int64_t const count = std::int64_t{p.batch} * p.heads * p.seq_q;
  return reference::some_rows(count, count);
}

/// Holds every element of O and of the log-sum-exp against the exact ones, and every byte around O
/// against the poison.
inline void expect_near(AttentionProblem const& p, AttentionResult const& r,
                        reference::Attention const& exact) {
  TokenStrides const s = *r.host.o_stride;
  std::vector<double> o, lse(r.lse.begin(), r.lse.end());
  std::vector<bool> belongs(r.o.size());
  std::size_t const width = static_cast<std::size_t>(bits(p.out_type()) / 8);
  for (int b = 0; b < p.batch; ++b) {
    for (int h = 0; h < p.heads; ++h) {
      for (int i = 0; i < p.seq_q; ++i) {
        for (int d = 0; d < p.dim_v(); ++d) {
          std::int64_t const at = b * s.batch + h * s.head + i * s.seq + d;
          o.push_back(reference::element(r.o.data(), p.out_type(), at));
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
  auto const of_o = reference::compare(o, exact.o, reference::largest_finite(p.out_type()));
  auto const of_lse = reference::compare(lse, exact.lse, reference::largest_finite(DType::f32));
  EXPECT_TRUE(of_o.within()) << name() << ": element " << of_o.worst << " of O is "
                             << of_o.worst_result << ", not "
                             << exact.o.value[static_cast<std::size_t>(of_o.worst)] << ": "
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

/// Runs a problem on a kernel of the family and holds its result against float64.
inline AttentionResult expect_correct(FamilyId family, Machine const& machine,
                                      AttentionProblem const& p,
                                      std::optional<int> configuration = {}) {
  AttentionResult r = run_on(family, machine, p, configuration);
  expect_near(p, r, reference::attention(r.host, rows_of(p)));
  return r;
}

/// NaN and infinities among Q, K and V, with and without a softcap, stand where float64 has them.
/// A row whose scores are all -inf sees no key. Head dim 64.
inline void expect_not_finite_values_kept(FamilyId family, Machine const& machine,
                                          AttentionProblem base) {
  float const infinity = __builtin_inff(), nan = __builtin_nanf("");
  base.head_dim = 64, base.seq_q = 40, base.seq_k = 150;
  for (float const softcap : {0.0f, 30.0f}) {
    base.softcap = softcap;
    if (softcap != 0 && family == attention_sm80) continue;
    for (float const what : {nan, infinity}) {
      for (auto const member : {&AttentionProblem::q, &AttentionProblem::k, &AttentionProblem::v}) {
        AttentionProblem p = base;
        p.*member = sometimes(what);
        expect_correct(family, machine, p);
      }
    }
    AttentionProblem hidden = base;
    hidden.causal = true, hidden.v = sometimes(infinity);
    expect_correct(family, machine, hidden);
  }
  AttentionProblem blind = base;
  blind.softcap = 0;
  blind.q = [](std::mt19937_64&) { return 0.5f; };
  blind.k = [=](std::mt19937_64&) { return -infinity; };
  AttentionResult const r = expect_correct(family, machine, blind);
  for (float const lse : r.lse) EXPECT_EQ(lse, -infinity);
}

}  // namespace tegula
