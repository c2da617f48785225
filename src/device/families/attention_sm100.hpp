#pragma once

#include <fmt/format.h>

#include "attention_serving.hpp"
#include "attention_tensors.hpp"
#include "family_traits.hpp"
#include "problem.hpp"
#include "tegula/device/reference.hpp"

namespace tegula::device {

template <> struct FamilyTraits<AttentionSm100Family> {
  using Arguments = AttentionArguments;
  using Choice = AttentionChoice;

  static std::string obstacle(AttentionArguments const& a, DeviceProperties const& device);

  static char const* check(AttentionArguments const& arguments, AttentionSm100Config const& c,
                           DeviceProperties const& device);

  /// How a serving configuration shares a problem out, for the plan's reason; of another, nothing.
  static std::string remark(AttentionArguments const& a, AttentionSm100Config const& c,
                            DeviceProperties const& device);

  /// Keys are not computed in parts.
  static std::int64_t workspace_bytes(AttentionArguments const&, AttentionSm100Config const&,
                                      DeviceProperties const&) {
    return 0;
  }

  /// What the choice weighs: the cycles of the busiest unit of the CTA that has the most tiles, by
  /// a B200's published rates. Nothing here was measured.
  static double cost(AttentionArguments const& arguments, AttentionSm100Config const& c,
                     DeviceProperties const& device);

  static AttentionSm100Params lower(Machine const& machine, AttentionArguments const& a,
                                    AttentionChoice const& choice);

  /// The blocks of rows are dealt out dynamically where some take longer than others.
  static void on_stream(AttentionSm100Params& p, void* workspace) {
    if (p.serving.box_keys > 0 || p.order.last_first)
      p.counter = static_cast<TileCounter*>(workspace);
  }

  static std::vector<sim::GlobalTensor> describe(AttentionSm100Config const& c,
                                                 AttentionSm100Params const& p) {
    if (c.serving) return describe_serving(p);
    return describe_heads(p, c.block_n);
  }

  static std::string name(AttentionSm100Config const& c) {
    std::string const dims = c.head_dim_v == c.head_dim
                                 ? std::to_string(c.head_dim)
                                 : fmt::format("{}/{}", c.head_dim, c.head_dim_v);
    std::string s = fmt::format("attention_sm100 {}", to_string(c.dtype));
    if (c.out != c.dtype) s += fmt::format("->{}", to_string(c.out));
    s += fmt::format(" d{} {}x{} {} stages {}", dims, block_m(c), c.block_n, c.stages,
                     text(c.exponential));
    if (c.polynomials > 0) s += fmt::format(", {} of 8 polynomial", c.polynomials);
    if (c.serving) s += " serving";
    return s;
  }

  static auto reference(AttentionArguments const& host, std::vector<std::int64_t> const& rows) {
    return tegula::reference::attention(host, rows);
  }
};

}  // namespace tegula::device
