#pragma once

#include <fmt/format.h>

#include "family_traits.hpp"
#include "problem.hpp"
#include "tegula/device/launch.hpp"
#include "tegula/device/reference.hpp"
#include "tma_gemm.hpp"

namespace tegula::device {

/// The problem as a configuration computes it: where its D is transposed, D^T = B^T A^T, whose m is
/// the caller's n, with the roles of A and B exchanged. Precondition: with_defaults(g).
inline GemmArguments as_computed_by(GemmSm90Config const& c, GemmArguments g) {
  if (!c.transposed) return g;
  DType const in = g.in;
  g.in = *g.in_b, g.in_b = in;
  auto const exchange = [](auto& x, auto& y) {
    auto const kept = x;
    x = y, y = kept;
  };
  exchange(g.a_major, g.b_major), exchange(g.m, g.n), exchange(g.a, g.b), exchange(g.lda, g.ldb);
  exchange(g.a_batch_stride, g.b_batch_stride), exchange(g.scale_a, g.scale_b);
  return g;
}

template <> struct FamilyTraits<GemmSm90Family> {
  using Arguments = GemmArguments;
  using Choice = GemmChoice;
  static constexpr bool walks_tiles = true;

  static std::string obstacle(GemmArguments const& g, DeviceProperties const& device) {
    if (device.compute_capability != 90)
      return fmt::format("the device is sm_{}", device.compute_capability);
    auto const obstacle = tma_obstacle(g);
    return obstacle.empty() ? obstacle : "TMA cannot address the problem: " + obstacle;
  }

  static char const* check(GemmArguments const& arguments, GemmSm90Config const& c,
                           DeviceProperties const&) {
    GemmArguments const g = as_computed_by(c, with_defaults(arguments));
    if (c.transposed && (g.beta != 0 || g.bias != nullptr)) return "neither C nor a bias";
    if (c.transposed && g.m % store_unit(c.out) != 0) return "rows of D of whole 16 bytes";
    if (c.a != g.in || c.b != *g.in_b) return "other operand types";
    if (g.block_scale.block != 0) return "no block scales";
    if (c.out != *g.out) return "another output type";
    if (c.a_major != g.a_major || c.b_major != g.b_major) return "other majors";
    if (c.activates != (g.activation != Activation::none))
      return c.activates ? "an activation" : "no activation";
    if (c.in_parts && most_parts(g, c) < 2) return "a workspace for two parts of k";
    return nullptr;
  }

  /// The most parts of K that a configuration computes such a problem in. Precondition:
  /// as_computed_by.
  static int most_parts(GemmArguments const& g, GemmSm90Config const& c);
  /// Bytes of the workspace for a choice; 0 where it needs none.
  static std::int64_t workspace_bytes(GemmArguments const& g, GemmChoice const& choice);

  static char const* unwanted(GemmConstraints const& wanted, GemmArguments const& g,
                              GemmSm90Config const& c, int number) {
    auto const differs = [](auto const& want, auto have) { return want && *want != have; };
    if (differs(wanted.kernel, gemm_sm90)) return "another kernel is asked for";
    if (differs(wanted.configuration, number)) return "another configuration is asked for";
    if (differs(wanted.schedule, c.schedule)) return "another schedule is asked for";
    if (differs(wanted.block_m, c.block_m) || differs(wanted.block_n, c.block_n))
      return "another tile is asked for";
    if (differs(wanted.cluster_m, c.cluster_m) || differs(wanted.cluster_n, c.cluster_n))
      return "another cluster is asked for";
    if (c.in_parts && wanted.split_k) {
      if (*wanted.split_k < 2) return "another split of k is asked for";
      if (*wanted.split_k > most_parts(as_computed_by(c, with_defaults(g)), c))
        return "more parts of k are asked for than the workspace or k has room for";
    } else if (differs(wanted.split_k, c.split_k)) {
      return "another split of k is asked for";
    }
    return nullptr;
  }

  /// By the order of tiles that suits the configuration best, or that is asked for.
  static GemmChoice predict(GemmArguments const& g, GemmSm90Config const& c,
                            DeviceProperties const& device, GemmConstraints const& wanted,
                            GemmCostModel const& model);
  /// How D is cut, where into tiles of two widths.
  static std::string remark(GemmArguments const& g, GemmChoice const& choice);

  static GemmSm90Params lower(Machine const& machine, GemmArguments const& g,
                              GemmChoice const& choice) {
    return tegula::lower(machine, g, choice);
  }

  static void on_stream(GemmSm90Params& p, void* workspace) {
    p.parts.partial.arrivals =
        reinterpret_cast<std::uint32_t*>(static_cast<char*>(workspace) + kArrivalsOffset);
  }

  static std::vector<sim::GlobalTensor> describe(GemmSm90Config const& c,
                                                 GemmSm90Params const& params) {
    return describe_tma_gemm(c.a_major, c.b_major, epilogue(c), params);
  }

  static std::string name(GemmSm90Config const& c) {
    std::string s = fmt::format("gemm_sm90 {}", to_string(c.a));
    if (c.b != c.a) s += fmt::format("x{}", to_string(c.b));
    s += fmt::format("->{} A:{} B:{} {}x{}x{} {}", to_string(c.out), text(c.a_major),
                     text(c.b_major), c.block_m, c.block_n, block_k(c), text(c.schedule));
    if (cluster_size(c) > c.split_k) s += fmt::format(" cluster {}x{}", c.cluster_m, c.cluster_n);
    if (c.transposed) s += c.store_buffers == 0 ? " transposed from registers" : " transposed";
    if (c.split_k > 1) s += fmt::format(" split-k {}", c.split_k);
    if (c.in_parts) s += " parts of k";
    if (c.min_ctas_per_sm > 1) s += fmt::format(" {} CTAs/SM", c.min_ctas_per_sm);
    if (c.activates) s += " activation";
    return s + fmt::format(" {} stages", stages(c));
  }

  static auto reference(GemmArguments const& host, std::vector<std::int64_t> const& rows) {
    return tegula::reference::gemm(host, rows);
  }
};

}  // namespace tegula::device
