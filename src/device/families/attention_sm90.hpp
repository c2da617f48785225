#pragma once

#include <fmt/format.h>

#include <algorithm>

#include "describe.hpp"
#include "family_traits.hpp"
#include "problem.hpp"
#include "tegula/device/reference.hpp"
#include "tegula/sim/tensor_map.hpp"

namespace tegula::device {

template <> struct FamilyTraits<AttentionSm90Family> {
  using Arguments = AttentionArguments;
  using Choice = AttentionChoice;

  static std::string obstacle(AttentionArguments const& a, DeviceProperties const& device);

  static char const* check(AttentionArguments const& arguments, AttentionSm90Config const& c,
                           DeviceProperties const& device) {
    AttentionArguments const a = with_defaults(arguments);
    if (c.dtype != a.dtype) return "another type";
    if (a.head_dim > c.head_dim) return "less than the head dimension";
    if (*a.head_dim_v > c.head_dim_v) return "less than the head dimension of V";
    if (c.exponential != a.exponential) return "another exponential";
    if (static_cast<std::size_t>(shared_bytes(c)) > device.shared_bytes)
      return "more shared memory than the device has";
    return nullptr;
  }

  /// What the choice weighs: the products of the CTA that has the most, tiles padded.
  static double cost(AttentionArguments const& a, AttentionSm90Config const& c,
                     DeviceProperties const& device);

  static AttentionSm90Params lower(Machine const& machine, AttentionArguments const& a,
                                   AttentionChoice const& choice);

  /// The blocks of rows are dealt out dynamically where some take longer than others.
  static void on_stream(AttentionSm90Params& p, void* workspace) {
    if (p.order.last_first) p.counter = static_cast<TileCounter*>(workspace);
  }

  /// But for those whose tensor maps the simulated machine did not encode.
  static std::vector<sim::GlobalTensor> describe(AttentionSm90Config const& c, AttentionSm90Params const& p);

  static std::string name(AttentionSm90Config const& c) {
    std::string const dims = c.head_dim_v == c.head_dim ? std::to_string(c.head_dim)
                                                        : fmt::format("{}/{}", c.head_dim, c.head_dim_v);
    return fmt::format("attention_sm90 {} d{} {}x{} {} consumers {} stages {}", to_string(c.dtype), dims,
                       block_m(c), c.block_n, c.consumers, c.stages, text(c.exponential));
  }

  static auto reference(AttentionArguments const& host, std::vector<std::int64_t> const& rows) {
    return tegula::reference::attention(host, rows);
  }
};

}  // namespace tegula::device
