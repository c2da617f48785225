#pragma once

#include <algorithm>
#include <map>
#include <span>
#include <tuple>

#include "gemm_problem.hpp"

/// Problems for the configurations of gemm_sm90's table, and how they are launched.
namespace tegula {

/// The configurations of gemm_sm90.
inline std::span<GemmSm90Config const> table() { return gemm_sm90_configurations(); }

/// Indices of the configurations for which `admits` holds.
template <class Admits> std::vector<int> configurations_that(Admits admits) {
  std::vector<int> found;
  for (std::size_t i = 0; i < table().size(); ++i) {
    if (admits(table()[i])) found.push_back(static_cast<int>(i));
  }
  return found;
}

inline bool plain_bf16(GemmSm90Config const& c) {
  return c.a == DType::bf16 && c.b == DType::bf16 && c.out == DType::bf16 && c.a_major == Major::k &&
         c.b_major == Major::k && c.activation == Activation::none;
}

/// How a configuration is launched: with how many clusters (0: as chosen), and in which order of tiles.
struct Launch {
  int configuration = 0;
  int clusters = 0;
  Raster raster = Raster::along_n;
  int group = 2;
};

inline GemmResult run(Machine const& machine, GemmProblem const& p, Launch const& launch) {
  return run_by(machine, p, [&](GemmArguments const& g) {
    GemmConstraints const constraints{.kernel = GemmKernel::sm90,
                                      .configuration = launch.configuration,
                                      .raster = launch.raster,
                                      .group = launch.group};
    GemmChoice choice = choose_gemm(g, machine.properties(), constraints);
    // The CTAs that split K compute one tile; the others walk as many as there are.
    bool const persistent = table()[static_cast<std::size_t>(launch.configuration)].split_k == 1;
    if (persistent && launch.clusters > 0) choice.clusters = std::min(launch.clusters, choice.tiling.tiles);
    gemm(machine, g, choice);
  });
}

inline GemmResult expect_correct(Machine const& machine, GemmProblem const& p, Launch const& launch) {
  SCOPED_TRACE(to_string(table()[static_cast<std::size_t>(launch.configuration)]));
  GemmResult r = run(machine, p, launch);
  expect_near_exact(p, r);
  return r;
}

/// A problem of the configuration's types, majors and activation.
inline GemmProblem problem_for(GemmSm90Config const& c) {
  return {.in = c.a,
          .in_b = c.b,
          .out = c.out,
          .a_major = c.a_major,
          .b_major = c.b_major,
          .aligned = true,
          .activation = c.activation};
}

/// One plain bf16 configuration for each schedule, cluster shape and split of K.
inline std::vector<int> one_of_each_form() {
  std::map<std::tuple<Schedule, int, int, int>, int> forms;
  for (int const i : configurations_that(plain_bf16)) {
    GemmSm90Config const& c = table()[static_cast<std::size_t>(i)];
    auto const form = std::tuple(c.schedule, c.cluster_m, c.cluster_n, c.split_k);
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
