#pragma once

#include <algorithm>
#include <map>
#include <span>
#include <tuple>
#include <utility>

#include "gemm_problem.hpp"

/// Problems for the configurations of gemm_sm90's table, and how they are launched.
namespace tegula {

/// The configurations of gemm_sm90.
inline std::span<GemmSm90Config const> table() { return configurations(gemm_sm90); }

/// Indices of the configurations for which `admits` holds.
template <class Admits> std::vector<int> configurations_that(Admits admits) {
  std::vector<int> found;
  for (std::size_t i = 0; i < table().size(); ++i) {
    if (admits(table()[i])) found.push_back(static_cast<int>(i));
  }
  return found;
}

inline bool of_two_widths(GemmSm90Config const& c) { return c.narrow_n > 0; }

inline bool plain_bf16(GemmSm90Config const& c) {
  return c.a == DType::bf16 && c.b == DType::bf16 && c.out == DType::bf16 &&
         c.a_major == Major::k && c.b_major == Major::k && !c.activates;
}

/// How a configuration is launched: with how many clusters (0: as chosen), in which order of tiles,
/// whether of two widths, such as make these clusters' longest share the shortest, and after how
/// many steps of K they meet; and in how many parts of K a configuration that is in parts computes.
struct Launch {
  int configuration = 0;
  int clusters = 0;
  Raster raster = Raster::along_n;
  int group = 2;
  bool fitted = false;
  int lockstep_steps = 0;
  int parts = 3;
};

/// The problem as a configuration takes it. One whose D is transposed has tiles of the caller's
/// columns by rows, whole units of TMA's stores in a row of D, and adds neither C nor a bias.
inline GemmProblem computable(GemmProblem p, GemmSm90Config const& c) {
  if (!c.transposed) return p;
  int const unit = store_unit(c.out);
  std::swap(p.m, p.n);
  p.n = (p.n + unit - 1) / unit * unit;
  p.beta = 0, p.bias = false;
  return p;
}

/// The bytes of workspace that a configuration takes for as many parts of K; 0 of one that is not
/// in parts. The problem is as it takes it.
inline std::int64_t workspace_for(GemmProblem const& p, GemmSm90Config const& c, int parts) {
  if (!c.in_parts) return 0;
  auto const tiles = [](int extent, int tile) { return std::int64_t{(extent + tile - 1) / tile}; };
  return part_bytes(c) * parts * p.batch *
         tiles(c.transposed ? p.n : p.m, c.block_m * c.cluster_m) *
         tiles(c.transposed ? p.m : p.n, c.block_n * c.cluster_n);
}

inline GemmResult run_computable(Machine const& machine, GemmProblem p, Launch const& launch) {
  GemmSm90Config const& c = table()[static_cast<std::size_t>(launch.configuration)];
  p.workspace = workspace_for(p, c, launch.parts);
  return run_by(machine, p, [&](GemmArguments const& g) {
    GemmConstraints const constraints{
        .kernel = gemm_sm90,
        .configuration = launch.configuration,
        .split_k = c.in_parts ? std::optional(launch.parts) : std::nullopt,
        .raster = launch.raster,
        .group = launch.group,
        .fitted = false};
    GemmChoice choice = choose_gemm(g, machine.properties(), constraints);
    // The CTAs that split K compute one tile; the others walk as many as there are.
    if (c.split_k == 1 && launch.clusters > 0)
      choice.clusters = std::min(launch.clusters, choice.tiling.tiles);
    if (launch.fitted) {
      choice.tiling = fit_tiles(choice.tiling.order(), p.n, tile_widths(c), choice.clusters);
      ASSERT_TRUE(choice.tiling.fitted())
          << to_string(p) << ", on " << choice.clusters << " clusters";
    }
    choice.lockstep_steps = launch.lockstep_steps;  // not heeded with split_k
    gemm(machine, g, choice);
  });
}

inline GemmResult run(Machine const& machine, GemmProblem const& p, Launch const& launch) {
  GemmSm90Config const& c = table()[static_cast<std::size_t>(launch.configuration)];
  return run_computable(machine, computable(p, c), launch);
}

inline GemmResult expect_correct(Machine const& machine, GemmProblem const& problem,
                                 Launch const& launch) {
  GemmSm90Config const& c = table()[static_cast<std::size_t>(launch.configuration)];
  SCOPED_TRACE(to_string(c));
  GemmProblem const p = computable(problem, c);
  GemmResult r = run_computable(machine, p, launch);
  expect_near_exact(p, r);
  return r;
}

/// A problem of the configuration's types and majors, and an activation where it has them.
inline GemmProblem problem_for(GemmSm90Config const& c) {
  return {.in = c.a,
          .in_b = c.b,
          .out = c.out,
          .a_major = c.a_major,
          .b_major = c.b_major,
          .aligned = true,
          .activation = c.activates ? Activation::gelu : Activation::none};
}

/// A problem for a configuration of two widths, for two clusters (launched as `fitted`), each of
/// which computes a wide tile and two narrow ones, of 3 or 4 steps of K: it reaches over the edges
/// of D, or, `even`, ends with whole units of TMA's stores.
inline GemmProblem fitted_problem(GemmSm90Config const& c, bool even) {
  GemmProblem p = problem_for(c);
  p.m = c.block_m * c.cluster_m - 7;
  p.n = tile_widths(c).wide + 2 * tile_widths(c).narrow - (even ? 8 : 5);
  p.k = 3 * block_k(c) + (even ? 0 : 8);
  p.batch = 2;
  return p;
}

/// One plain bf16 configuration for each schedule, cluster shape, split or parts of K, order of D,
/// and way that it leaves by.
inline std::vector<int> one_of_each_form() {
  std::map<std::tuple<Schedule, int, int, int, bool, int>, int> forms;
  for (int const i : configurations_that(plain_bf16)) {
    GemmSm90Config const& c = table()[static_cast<std::size_t>(i)];
    auto const form = std::tuple(c.schedule, c.cluster_m, c.cluster_n, c.in_parts ? -1 : c.split_k,
                                 c.transposed, c.store_buffers);
    auto const known = forms.find(form);
    if (known == forms.end()) {
      forms[form] = i;
    } else if (GemmSm90Config const& k = table()[static_cast<std::size_t>(known->second)];
               c.block_m * c.block_n < k.block_m * k.block_n) {
      forms[form] = i;  // the smallest tile, for speed
    }
  }
  std::vector<int> result;
  for (auto const& form : forms) result.push_back(form.second);
  return result;
}

}  // namespace tegula
