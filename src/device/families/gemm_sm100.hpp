#pragma once

#include <fmt/format.h>

#include "family_traits.hpp"
#include "problem.hpp"
#include "tegula/device/launch.hpp"
#include "tegula/device/reference.hpp"
#include "tma_gemm.hpp"

namespace tegula::device {

template <> struct FamilyTraits<GemmSm100Family> {
  using Arguments = GemmArguments;
  using Choice = GemmChoice;
  static constexpr bool walks_tiles = true;

  static std::string obstacle(GemmArguments const& g, DeviceProperties const& device) {
    if (device.compute_capability != 100)
      return fmt::format("the device is sm_{}", device.compute_capability);
    auto const obstacle = tma_obstacle(g);
    return obstacle.empty() ? obstacle : "TMA cannot address the problem: " + obstacle;
  }

  static char const* check(GemmArguments const& arguments, GemmSm100Config const& c,
                           DeviceProperties const&) {
    GemmArguments const g = with_defaults(arguments);
    if (c.a != g.in || c.b != *g.in_b) return "other operand types";
    if (c.scale != g.block_scale)
      return c.scale.block == 0 ? "no block scales" : "other block scales";
    if (c.out != *g.out) return "another output type";
    if (c.a_major != g.a_major || c.b_major != g.b_major) return "other majors";
    if (c.activates != (g.activation != Activation::none))
      return c.activates ? "an activation" : "no activation";
    return nullptr;
  }

  static char const* unwanted(GemmConstraints const& wanted, GemmArguments const&,
                              GemmSm100Config const& c, int number) {
    auto const differs = [](auto const& want, auto have) { return want && *want != have; };
    if (differs(wanted.kernel, gemm_sm100)) return "another kernel is asked for";
    if (differs(wanted.configuration, number)) return "another configuration is asked for";
    if (differs(wanted.block_m, c.block_m) || differs(wanted.block_n, c.block_n))
      return "another tile is asked for";
    GemmClusterSpec const cluster = cluster_of(c);
    if (differs(wanted.cluster_m, cluster.m) || differs(wanted.cluster_n, cluster.n))
      return "another cluster is asked for";
    if (wanted.schedule || wanted.split_k || wanted.fitted.value_or(false))
      return "what is asked for only gemm_sm90 has";
    return nullptr;
  }

  /// By tensor cores and L2 alone, at a B200's published rates: nothing here was measured.
  static GemmChoice predict(GemmArguments const& g, GemmSm100Config const& c,
                            DeviceProperties const& device, GemmConstraints const& wanted,
                            GemmCostModel const& model);

  static std::string remark(GemmArguments const&, GemmChoice const&) { return {}; }

  static GemmSm90Params lower(Machine const& machine, GemmArguments const& g,
                              GemmChoice const& choice) {
    return lower(machine, g, configuration(gemm_sm100, choice.configuration), choice);
  }
  static GemmSm90Params lower(Machine const& machine, GemmArguments const& g,
                              GemmSm100Config const& c, GemmChoice const& choice);

  static std::vector<sim::GlobalTensor> describe(GemmSm100Config const& c,
                                                 GemmSm90Params const& params) {
    return describe_tma_gemm(c.a_major, c.b_major, epilogue(c), params);
  }

  static std::string name(GemmSm100Config const& c) {
    std::string s = fmt::format("gemm_sm100 {}", to_string(c.a));
    if (c.b != c.a) s += fmt::format("x{}", to_string(c.b));
    s += fmt::format("->{} A:{} B:{} {}x{}x{}", to_string(c.out), text(c.a_major), text(c.b_major),
                     c.ctas * c.block_m, c.block_n, block_k(c));
    if (c.scale.block != 0)
      s += fmt::format(" {} for each {}", to_string(c.scale.type), c.scale.block);
    if (c.ctas == 2) s += " pair";
    GemmClusterSpec const cluster = cluster_of(c);
    if (cluster.size() > c.ctas) s += fmt::format(" cluster {}x{}", cluster.m, cluster.n);
    if (c.launched) s += " launch control";
    if (c.activates) s += " activation";
    return s + fmt::format(" {} stages", stages(c));
  }

  static auto reference(GemmArguments const& host, std::vector<std::int64_t> const& rows) {
    return tegula::reference::gemm(host, rows);
  }
};

}  // namespace tegula::device
