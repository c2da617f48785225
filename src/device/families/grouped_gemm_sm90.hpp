#pragma once

#include <fmt/format.h>

#include "describe.hpp"
#include "family_traits.hpp"
#include "grouped_gemm_tensors.hpp"
#include "problem.hpp"
#include "tegula/device/grouped_gemm.hpp"

namespace tegula::device {

template <> struct FamilyTraits<GroupedGemmSm90Family> {
  using Arguments = GroupedGemmArguments;
  using Choice = GroupedGemmChoice;

  static std::string obstacle(GroupedGemmArguments const&, DeviceProperties const& device) {
    if (device.compute_capability != 90)
      return fmt::format("the device is sm_{}", device.compute_capability);
    return {};
  }

  static char const* check(GroupedGemmArguments const& arguments, GroupedGemmSm90Config const& c,
                           DeviceProperties const&) {
    GroupedGemmArguments const g = with_defaults(arguments);
    if (c.a != g.in || c.b != *g.in_b) return "other operand types";
    if (c.out != *g.out) return "another output type";
    if (c.scales != *g.scales) return "other scales";
    if (g.grouping == Grouping::k && !computes_groups_of_k(c)) return "no groups of k";
    return nullptr;
  }

  static char const* unwanted(GroupedGemmConstraints const& wanted, GroupedGemmSm90Config const& c,
                              int number) {
    auto const differs = [](auto const& want, auto have) { return want && *want != have; };
    if (differs(wanted.configuration, number)) return "another configuration is asked for";
    if (differs(wanted.block_m, c.block_m) || differs(wanted.block_n, c.block_n))
      return "another tile is asked for";
    if (differs(wanted.cluster_m, c.cluster_m) || differs(wanted.cluster_n, c.cluster_n))
      return "another cluster is asked for";
    if (differs(wanted.split_k, c.split_k)) return "another split of k is asked for";
    return nullptr;
  }

  static GroupedGemmChoice predict(GroupedGemmArguments const& g, GroupedGemmSm90Config const& c,
                                   DeviceProperties const& device,
                                   GroupedGemmConstraints const& wanted);

  static GroupedGemmSm90Params lower(Machine const& machine, GroupedGemmArguments const& g,
                                     GroupedGemmChoice const& choice);

  /// But for those whose tensor maps the simulated machine did not encode. Which rows the groups
  /// have is not known before the kernel runs.
  static std::vector<sim::GlobalTensor> describe(GroupedGemmSm90Config const& c,
                                                 GroupedGemmSm90Params const& p);

  static std::string name(GroupedGemmSm90Config const& c) {
    std::string s = fmt::format("grouped_gemm_sm90 {}", to_string(c.a));
    if (c.b != c.a) s += fmt::format("x{}", to_string(c.b));
    s += fmt::format("->{}", to_string(c.out));
    if (c.scales != Scales::none) s += fmt::format(" scales {}", text(c.scales));
    s += fmt::format(" {}x{}x{}", c.block_m, c.block_n, block_k(c));
    if (c.cluster_m * c.cluster_n > 1) s += fmt::format(" cluster {}x{}", c.cluster_m, c.cluster_n);
    if (c.split_k > 1) s += fmt::format(" split-k {}", c.split_k);
    if (c.min_ctas_per_sm > 1) s += fmt::format(" {} CTAs/SM", c.min_ctas_per_sm);
    return s + fmt::format(" {} stages", stages(c));
  }

  static auto reference(GroupedGemmArguments const& host, std::vector<std::int64_t> const& rows) {
    return tegula::reference::grouped_gemm(host, rows);
  }
};

inline std::vector<sim::GlobalTensor> FamilyTraits<GroupedGemmSm90Family>::describe(
    GroupedGemmSm90Config const& c, GroupedGemmSm90Params const& p) {
  std::vector<GlobalTensor> tensors;
  if (!describable(p.tiles, p.out)) return tensors;
  auto const add = [&](Names const& names, TensorMap const& map, bool k_first) {
    describe_group_operand(tensors, names, map, k_first, p.tiles.grouping);
  };
  add(kA, p.a, true);
  add(kB, p.b, true);
  if (c.scales != Scales::none) add({"scales of A", "row", "block"}, p.scale_a, false);
  if (c.scales == Scales::rows_by_rows) add({"scales of B", "n", "block"}, p.scale_b, false);
  describe_group_output(tensors, c.out, p.tiles, p.out);
  return tensors;
}

}  // namespace tegula::device
