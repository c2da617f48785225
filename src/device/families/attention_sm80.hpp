#pragma once

#include <fmt/format.h>

#include "attention_serving.hpp"
#include "describe.hpp"
#include "family_traits.hpp"
#include "problem.hpp"
#include "tegula/device/reference.hpp"

namespace tegula::device {

template <> struct FamilyTraits<AttentionSm80Family> {
  using Arguments = AttentionArguments;
  using Choice = AttentionChoice;

  static std::string obstacle(AttentionArguments const&, DeviceProperties const&) { return {}; }

  static char const* check(AttentionArguments const& a, AttentionConfig const& c,
                           DeviceProperties const& device) {
    if (c.dtype != a.dtype) return "another type";
    if (c.head_dim != a.head_dim) return "another head dimension";
    if (a.head_dim_v.value_or(a.head_dim) != c.head_dim) return "another head dimension of V";
    if (c.causal != a.causal) return "another mask";
    if (a.window_left || (a.window_right && !a.causal)) return "a window";
    if (a.softcap != 0) return "a softcap";
    if (a.sink != nullptr) return "a sink";
    if (needs_serving(a)) return "sequences of their own lengths";
    if (asks_for_parts(a)) return kKeysInParts;
    if (c.exponential != a.exponential) return "another exponential";
    if (static_cast<std::size_t>(shared_bytes(c)) > device.shared_bytes)
      return "more shared memory than the device has";
    return nullptr;
  }

  /// What the choice weighs: rounds of CTAs over the multiprocessors, each as long as one CTA.
  static double cost(AttentionArguments const& arguments, AttentionConfig const& c,
                     DeviceProperties const& device) {
    AttentionArguments const a = with_defaults(arguments);
    // Multiply-adds are this many times cheaper than the elements that must be copied to a CTA's
    // shared memory for them. Tuned for speed: a wrong value chooses a slower configuration, never
    // a wrong result.
    constexpr double copy = 64;
    double const keys = static_cast<double>(ceil_div(*a.seq_k, c.block_n) * c.block_n);
    double const cta =
        static_cast<double>(c.head_dim) * (keys * (c.block_m + copy) + copy * c.block_m);
    return static_cast<double>(
               ceil_div(ceil_div(a.seq_q, c.block_m) * a.heads * a.batch, device.multiprocessors)) *
           cta;
  }

  static AttentionParams lower(Machine const&, AttentionArguments const& a,
                               AttentionChoice const&) {
    return tegula::lower(a);
  }

  static std::vector<sim::GlobalTensor> describe(AttentionConfig const& c,
                                                 AttentionParams const& p) {
    if (std::min({p.batch, p.heads, p.kv_heads, p.seq_q, p.seq_k}) < 1) return {};
    // The last row of Q sees every key, causal or not; the first rows may see none.
    Coverage const of_q = c.causal && p.seq_q > p.seq_k ? Coverage::any : Coverage::read;
    std::vector<GlobalTensor> tensors = {
        tokens("Q", c.dtype, p.q, p.seq_q, c.head_dim, p.heads, p.batch, p.q_stride, of_q),
        tokens("K", c.dtype, p.k, p.seq_k, c.head_dim, p.kv_heads, p.batch, p.k_stride,
               Coverage::read),
        tokens("V", c.dtype, p.v, p.seq_k, c.head_dim, p.kv_heads, p.batch, p.v_stride,
               Coverage::read),
        tokens("O", c.dtype, p.o, p.seq_q, c.head_dim, p.heads, p.batch, p.o_stride,
               Coverage::written)};
    if (p.lse != nullptr) tensors.push_back(log_sum_exp(p.lse, p.seq_q, p.heads, p.batch));
    return tensors;
  }

  static std::string name(AttentionConfig const& c) {
    return fmt::format("attention_sm80 {} d{} {}x{} {} warps {} stages{} {}", to_string(c.dtype),
                       c.head_dim, c.block_m, c.block_n, c.warps, c.stages,
                       c.causal ? " causal" : "", text(c.exponential));
  }

  static auto reference(AttentionArguments const& host, std::vector<std::int64_t> const& rows) {
    return tegula::reference::attention(host, rows);
  }
};

}  // namespace tegula::device
