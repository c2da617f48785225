#pragma once

#include <algorithm>

#include "gemm_problem.hpp"

/// Problems for the configurations of gemm_sm100's table, and how they are launched.
namespace tegula {

/// A problem of the configuration's types and majors, and an activation where it has them.
inline GemmProblem problem_for(GemmSm100Config const& c) {
  return {.in = c.a,
          .in_b = c.b,
          .out = c.out,
          .a_major = c.a_major,
          .b_major = c.b_major,
          .aligned = true,
          .activation = c.activates ? Activation::gelu : Activation::none};
}

/// By one configuration of gemm_sm100, on so many CTAs.
inline GemmResult run_sm100(Machine const& machine, GemmProblem const& p, int configuration,
                            int ctas) {
  return run_by(machine, p, [&](GemmArguments const& g) {
    GemmChoice choice = choose_gemm(g, machine.properties(),
                                    {.kernel = gemm_sm100, .configuration = configuration});
    choice.clusters = std::min(ctas, choice.tiling.tiles);
    gemm(machine, g, choice);
  });
}

}  // namespace tegula
