#pragma once

#include <fmt/format.h>

#include "family_traits.hpp"
#include "gemm_sm100.hpp"
#include "grouped_gemm_tensors.hpp"
#include "tegula/device/grouped_gemm.hpp"

namespace tegula::device {

template <> struct FamilyTraits<GroupedGemmSm100Family> {
  using Arguments = GroupedGemmArguments;
  using Choice = GroupedGemmChoice;

  static std::string obstacle(GroupedGemmArguments const&, DeviceProperties const& device) {
    if (device.compute_capability != 100)
      return fmt::format("the device is sm_{}", device.compute_capability);
    return {};
  }

  static char const* check(GroupedGemmArguments const& arguments, GroupedGemmSm100Config const& c,
                           DeviceProperties const&) {
    GroupedGemmArguments const g = with_defaults(arguments);
    if (c.a != g.in || c.b != *g.in_b) return "other operand types";
    if (c.out != *g.out) return "another output type";
    if (*g.scales != Scales::none) return "no scales of 128";
    if (c.scale != g.block_scale)
      return c.scale.block == 0 ? "no block scales" : "other block scales";
    return nullptr;
  }

  static char const* unwanted(GroupedGemmConstraints const& wanted, GroupedGemmSm100Config const& c,
                              int number) {
    auto const differs = [](auto const& want, auto have) { return want && *want != have; };
    if (differs(wanted.configuration, number)) return "another configuration is asked for";
    if (differs(wanted.block_m, c.ctas * c.block_m) || differs(wanted.block_n, c.block_n))
      return "another tile is asked for";
    if (differs(wanted.cluster_m, 1) || differs(wanted.cluster_n, 1))
      return "another cluster is asked for";
    if (differs(wanted.split_k, 1)) return "another split of k is asked for";
    return nullptr;
  }

  /// As gemm_sm100 of a batch of groups of as many rows as are expected: nothing here was measured.
  static GroupedGemmChoice predict(GroupedGemmArguments const& g, GroupedGemmSm100Config const& c,
                                   DeviceProperties const& device,
                                   GroupedGemmConstraints const& wanted);

  static GroupedGemmSm100Params lower(Machine const& machine, GroupedGemmArguments const& g,
                                      GroupedGemmChoice const& choice);

  static std::vector<sim::GlobalTensor> describe(GroupedGemmSm100Config const& c,
                                                 GroupedGemmSm100Params const& p) {
    std::vector<GlobalTensor> tensors;
    GroupTiles const& tiles = p.schedule.tiles;
    if (!describable(tiles, p.epilogue)) return tensors;
    auto const named = [&](Names names) {  // a pair of e2m1 is an element of memory
      if (are_pairs(c.a, c.b)) names.column = "pair";
      return names;
    };
    describe_group_operand(tensors, named(kA), p.problem.a, true, tiles.grouping);
    describe_group_operand(tensors, named(kB), p.problem.b, true, tiles.grouping);
    if (c.scale.block != 0) {
      Coverage const read = tiles.grouping == Grouping::none ? Coverage::read : Coverage::any;
      describe_block_scales(tensors, "scales of A", p.scale_a, read);
      describe_block_scales(tensors, "scales of B", p.scale_b, read);
    }
    describe_group_output(tensors, c.out, tiles, p.epilogue);
    return tensors;
  }

  static std::string name(GroupedGemmSm100Config const& c) {
    return "grouped_" + FamilyTraits<GemmSm100Family>::name(c);
  }

  static auto reference(GroupedGemmArguments const& host, std::vector<std::int64_t> const& rows) {
    return tegula::reference::grouped_gemm(host, rows);
  }
};

}  // namespace tegula::device
