#pragma once

#include <fmt/format.h>

#include <algorithm>

#include "describe.hpp"
#include "family_traits.hpp"
#include "problem.hpp"
#include "tegula/device/grouped_gemm.hpp"
#include "tegula/sim/tensor_map.hpp"

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
    if (c.cluster_n > 1 && g.grouping == Grouping::k) return "no groups of k, for it has a cluster";
    return nullptr;
  }

  static char const* unwanted(GroupedGemmConstraints const& wanted, GroupedGemmSm90Config const& c,
                              int number) {
    auto const differs = [](auto const& want, auto have) { return want && *want != have; };
    if (differs(wanted.configuration, number)) return "another configuration is asked for";
    if (differs(wanted.block_m, c.block_m) || differs(wanted.block_n, c.block_n))
      return "another tile is asked for";
    if (differs(wanted.cluster_n, c.cluster_n)) return "another cluster is asked for";
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
    if (c.cluster_n > 1) s += fmt::format(" cluster 1x{}", c.cluster_n);
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
  GroupTiles const& t = p.tiles;
  if (std::min({t.rows, t.depth, t.groups, p.out.n}) < 1) return {};
  bool const one = t.grouping == Grouping::none, by_k = t.grouping == Grouping::k;
  std::vector<GlobalTensor> tensors;
  auto const stride = [](TensorMapDescription const& map, std::size_t axis) {
    return map.strides[axis - 1] / bytes_of(map.dtype);
  };
  auto const add = [&](Names const& names, TensorMap const& map, bool k_first) {
    auto const x = sim::decode(map);
    if (!x || x->rank != 3) return;
    std::size_t const row = k_first ? 1 : 0, column = 1 - row;
    auto const at = [&](std::size_t axis) { return axis == 0 ? 1 : stride(*x, axis); };
    tensors.push_back(Matrices{x->dtype, x->address, x->extents[row], x->extents[column], at(row),
                               at(column), x->extents[2], at(2)}
                          .as(names, one ? Coverage::read : Coverage::any));
  };
  add(kA, p.a, true);
  add(kB, p.b, true);
  if (c.scales != Scales::none) add({"scales of A", "row", "block"}, p.scale_a, false);
  if (c.scales == Scales::rows_by_rows) add({"scales of B", "n", "block"}, p.scale_b, false);
  std::int64_t const rows =
      t.grouping == Grouping::masked ? std::int64_t{t.rows} * t.groups : t.rows;
  Matrices const d = {
      c.out, p.out.d, rows, p.out.n, p.out.ldd, 1, by_k ? t.groups : 1, p.out.d_group_stride};
  tensors.push_back(d.as(kD, one || by_k ? Coverage::written : Coverage::any));
  if (p.out.c != nullptr)
    tensors.push_back(Matrices{c.out, p.out.c, rows, p.out.n, p.out.ldc, 1, by_k ? t.groups : 1,
                               p.out.c_group_stride}
                          .as(kC, one || by_k ? Coverage::read : Coverage::any));
  return tensors;
}

}  // namespace tegula::device
