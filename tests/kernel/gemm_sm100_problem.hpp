#pragma once

#include <algorithm>

#include "gemm_problem.hpp"

/// Problems for the configurations of gemm_sm100's and scaled_gemm_sm100's tables, and how they are
/// launched.
namespace tegula {

/// A problem of the configuration's types, majors and scales, and an activation where it has them.
inline GemmProblem problem_for(GemmSm100Config const& c) {
  return {.in = c.a,
          .in_b = c.b,
          .out = c.out,
          .a_major = c.a_major,
          .b_major = c.b_major,
          .aligned = true,
          .activation = c.activates ? Activation::gelu : Activation::none,
          .block_scale = c.scale};
}

/// By one configuration of a family, on so many clusters.
template <KernelFamily F>
GemmResult run_sm100(F family, Machine const& machine, GemmProblem const& p, int configuration,
                     int clusters) {
  return run_by(machine, p, [&](GemmArguments const& g) {
    GemmChoice choice =
        choose_gemm(g, machine.properties(), {.kernel = family, .configuration = configuration});
    choice.clusters = std::min(clusters, choice.tiling.tiles);
    gemm(machine, g, choice);
  });
}
inline GemmResult run_sm100(Machine const& machine, GemmProblem const& p, int configuration,
                            int clusters) {
  return run_sm100(gemm_sm100, machine, p, configuration, clusters);
}

}  // namespace tegula
