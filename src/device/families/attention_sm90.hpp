#pragma once

#include <fmt/format.h>

#include "attention_serving.hpp"
#include "attention_tensors.hpp"
#include "family_traits.hpp"
#include "problem.hpp"
#include "tegula/device/reference.hpp"
#include "tegula/io/text.hpp"

namespace tegula::device {

template <> struct FamilyTraits<AttentionSm90Family> {
  using Arguments = AttentionArguments;
  using Choice = AttentionChoice;

  static std::string obstacle(AttentionArguments const& a, DeviceProperties const& device);

  static char const* check(AttentionArguments const& arguments, AttentionSm90Config const& c,
                           DeviceProperties const& device) {
    AttentionArguments const a = with_defaults(arguments);
    if (c.dtype != a.dtype) return "another type";
    if (c.latent != is_latent(a)) return "latent attention, or not";
    if (a.head_dim > c.head_dim) return "less than the head dimension";
    if (*a.head_dim_v > c.head_dim_v) return "less than the head dimension of V";
    if (c.exponential != a.exponential) return "another exponential";
    // Of serving configurations all sum in f32.
    if ((c.promoted > 0) != (a.precise.value_or(false) || (c.serving && a.dtype == DType::e4m3)))
      return "another precision of sums";
    if (static_cast<std::size_t>(shared_bytes(c)) > device.shared_bytes)
      return "more shared memory than the device has";
    return unfit(a, c, device);
  }

  /// What keeps a configuration from the sequences' lengths, pages and numbers of queries: a
  /// clause, or null. Precondition: arguments with defaults.
  static char const* unfit(AttentionArguments const& a, AttentionSm90Config const& c,
                           DeviceProperties const& device);

  /// How many heads that share keys a tile packs, of a configuration that is not `serving`: as many
  /// as are predicted to be fastest, and one unless that pays. Precondition: arguments with
  /// defaults.
  static int group(AttentionArguments const& a, AttentionSm90Config const& c,
                   DeviceProperties const& device);

  /// How a serving configuration shares a problem out, for the plan's reason; of another, what its
  /// tiles pack.
  static std::string remark(AttentionArguments const& a, AttentionSm90Config const& c,
                            DeviceProperties const& device);

  /// What a workspace must have for the keys to be computed in as many parts as are best.
  static std::int64_t workspace_bytes(AttentionArguments const& a, AttentionSm90Config const& c,
                                      DeviceProperties const& device);

  /// What the choice weighs: the products of the CTA that has the most, tiles padded.
  static double cost(AttentionArguments const& a, AttentionSm90Config const& c,
                     DeviceProperties const& device);

  static AttentionSm90Params lower(Machine const& machine, AttentionArguments const& a,
                                   AttentionChoice const& choice);
  /// The same of a configuration, whose tiles pack `dense_group` heads if it is not `serving`.
  static AttentionSm90Params lower(Machine const& machine, AttentionArguments const& a,
                                   AttentionSm90Config const& c, int dense_group);

  /// The blocks of rows are dealt out dynamically where some take longer than others.
  static void on_stream(AttentionSm90Params& p, void* workspace) {
    bool const serving = p.serving.box_keys > 0;
    if (serving || p.order.last_first) p.counter = static_cast<TileCounter*>(workspace);
    if (serving)
      p.serving.arrivals =
          reinterpret_cast<std::uint32_t*>(static_cast<char*>(workspace) + kArrivalsOffset);
  }

  /// But for those whose tensor maps the simulated machine did not encode.
  static std::vector<sim::GlobalTensor> describe(AttentionSm90Config const& c,
                                                 AttentionSm90Params const& p);

  static std::string name(AttentionSm90Config const& c) {
    std::string const dims = c.head_dim_v == c.head_dim
                                 ? std::to_string(c.head_dim)
                                 : fmt::format("{}/{}", c.head_dim, c.head_dim_v);
    return fmt::format("attention_sm90 {} d{} {}x{} {} {} stages {}{}{}", to_string(c.dtype), dims,
                       block_m(c), c.block_n, io::counted(c.consumers, "consumer"), c.stages,
                       text(c.exponential),
                       c.promoted > 0 ? " precise"
                       : c.latent     ? " latent"
                                      : "",
                       c.serving ? " serving" : "");
  }

  static auto reference(AttentionArguments const& host, std::vector<std::int64_t> const& rows) {
    return tegula::reference::attention(host, rows);
  }
};

inline std::vector<sim::GlobalTensor> FamilyTraits<AttentionSm90Family>::describe(
    AttentionSm90Config const& c, AttentionSm90Params const& p) {
  if (c.serving) return describe_serving(p);
  return describe_heads(p, c.block_n);
}

}  // namespace tegula::device
