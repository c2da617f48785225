#pragma once

#include <fmt/format.h>

#include <algorithm>

#include "describe.hpp"
#include "family_traits.hpp"
#include "problem.hpp"
#include "tegula/device/reference.hpp"

namespace tegula::device {

template <> struct FamilyTraits<GemmSm80Family> {
  using Arguments = GemmArguments;
  using Choice = GemmChoice;
  static constexpr bool walks_tiles = false;

  static std::string obstacle(GemmArguments const&, DeviceProperties const&) { return {}; }

  static char const* check(GemmArguments const& arguments, GemmConfig const& c,
                           DeviceProperties const& device) {
    GemmArguments const g = with_defaults(arguments);
    if (c.in != g.in || c.in != *g.in_b) return "other operand types";
    if (g.block_scale.block != 0) return "no block scales";
    if (c.out != *g.out) return "another output type";
    if (c.a_major != g.a_major || c.b_major != g.b_major) return "other majors";
    if (c.vector_bytes > vector_bytes(g))
      return "copies of 16 bytes, which the alignment rules out";
    if (static_cast<std::size_t>(shared_bytes(c)) > device.shared_bytes)
      return "more shared memory than the device has";
    return nullptr;
  }

  /// It is asked for by name, or by nothing that only families that walk tiles have.
  static char const* unwanted(GemmConstraints const& wanted, GemmArguments const&,
                              GemmConfig const&, int number) {
    bool const by_name = wanted.kernel == gemm_sm80;
    if (wanted.kernel && !by_name) return "another kernel is asked for";
    if (wanted.configuration && (!by_name || *wanted.configuration != number))
      return "another configuration is asked for";
    if (wanted.schedule || wanted.block_m || wanted.block_n || wanted.cluster_m ||
        wanted.cluster_n || wanted.split_k || wanted.raster || wanted.group || wanted.fitted)
      return "what is asked for only gemm_sm90 has";
    return nullptr;
  }

  static GemmChoice predict(GemmArguments const& g, GemmConfig const& c,
                            DeviceProperties const& device, GemmConstraints const&,
                            GemmCostModel const& model) {
    // A multiply-add is this many times cheaper than an element that must be copied to shared
    // memory for it.
    constexpr double copy = 64;
    double const copies = copy * (c.block_m + c.block_n) * (16.0 / c.vector_bytes);
    double const cta = static_cast<double>(ceil_div(g.k, c.block_k) * c.block_k) *
                       (static_cast<double>(c.block_m) * c.block_n + copies);
    std::int64_t const tiles = ceil_div(g.m, c.block_m) * ceil_div(g.n, c.block_n) * g.batch;
    GemmChoice choice{.kernel = gemm_sm80};
    choice.cost.tiles = static_cast<int>(tiles);
    choice.cost.waves = static_cast<int>(ceil_div(tiles, device.multiprocessors));
    choice.cost.launch = model.launch_us;
    choice.cost.tensor =
        choice.cost.waves * cta /
        (model.sm80_multiply_adds_per_cycle * 1e3 * model.clock_share * device.clock_ghz);
    choice.cost.total = choice.cost.launch + choice.cost.tensor;
    return choice;
  }

  static std::string remark(GemmArguments const&, GemmChoice const&) { return {}; }

  static GemmParams lower(Machine const&, GemmArguments const& g, GemmChoice const&) {
    return tegula::lower(g);
  }

  static std::vector<sim::GlobalTensor> describe(GemmConfig const& c, GemmParams const& p) {
    if (std::min({p.m, p.n, p.k, p.batch}) < 1) return {};
    Coverage const of_ab = of_operand(p.alpha);
    std::vector<GlobalTensor> tensors = {
        operand(c.in, p.a, c.a_major, p.m, p.k, p.lda, p.batch, p.a_batch).as(kA, of_ab),
        operand(c.in, p.b, c.b_major, p.n, p.k, p.ldb, p.batch, p.b_batch).as(kB, of_ab),
        Matrices{c.out, p.d, p.m, p.n, p.ldd, 1, p.batch, p.d_batch}.as(kD, Coverage::written)};
    if (p.beta != 0)
      tensors.push_back(
          Matrices{c.out, p.c, p.m, p.n, p.ldc, 1, p.batch, p.c_batch}.as(kC, Coverage::read));
    if (p.bias != nullptr) tensors.push_back(bias(c.out, p.bias, p.n));
    return tensors;
  }

  static std::string name(GemmConfig const& c) {
    return fmt::format("gemm_sm80 {}->{} A:{} B:{} {}x{}x{} {}x{} warps {} stages {}-byte",
                       to_string(c.in), to_string(c.out), text(c.a_major), text(c.b_major),
                       c.block_m, c.block_n, c.block_k, c.warps_m, c.warps_n, c.stages,
                       c.vector_bytes);
  }

  static auto reference(GemmArguments const& host, std::vector<std::int64_t> const& rows) {
    return tegula::reference::gemm(host, rows);
  }
};

}  // namespace tegula::device
