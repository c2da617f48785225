// What a launch of gemm_sm100 takes by a rough model of its cost, and what it is launched with.

#include "gemm_sm100.hpp"

#include <algorithm>

namespace tegula::device {

GemmChoice FamilyTraits<GemmSm100Family>::predict(GemmArguments const& arguments,
                                                  GemmSm100Config const& c,
                                                  DeviceProperties const& device,
                                                  GemmConstraints const& wanted,
                                                  GemmCostModel const& model) {
  GemmArguments const g = with_defaults(arguments);
  GemmClusterSpec const cluster = cluster_of(c);
  int const tiles_m = static_cast<int>(ceil_div(g.m, cluster.m * c.block_m)),
            tiles_n = static_cast<int>(ceil_div(g.n, cluster.n * c.block_n));
  int const tiles = tiles_m * tiles_n * static_cast<int>(g.batch);
  int const across = std::min(8, wanted.raster == Raster::along_m ? tiles_n : tiles_m);
  GemmChoice choice{.kernel = gemm_sm100};
  int const at_once =
      std::max(1, std::min(tiles, resident_clusters(cluster.size(), device, model)));
  choice.clusters = c.launched ? tiles : at_once;
  choice.tiling = TileScheduler{.tiles_m = tiles_m,
                                .tiles_n = tiles_n,
                                .batches = static_cast<int>(g.batch),
                                .raster = wanted.raster.value_or(Raster::along_n),
                                .group = std::max(1, wanted.group.value_or(across))};
  int const waves = static_cast<int>(ceil_div(tiles, at_once));
  // Of a step of K, 128 bytes: four instructions, each of 16-bit multiply-adds as many as of its
  // own. Of a pair's each tensor core does half.
  double const cycles_per_us = 1e3 * model.clock_share * device.clock_ghz;
  double const steps = static_cast<double>(waves) * static_cast<double>(ceil_div(g.k, block_k(c)));
  double const tensor = 4.0 * c.block_m * c.block_n * 16 / (2 * model.multiply_adds_per_cycle);
  double const fetch = stage_bytes(c) / model.sm_bytes_per_cycle;
  choice.cost.tiles = tiles;
  choice.cost.waves = waves;
  choice.cost.share = waves;
  choice.cost.launch = model.launch_us;
  choice.cost.tensor = steps * tensor / cycles_per_us;
  choice.cost.l2 = steps * fetch / cycles_per_us;
  choice.cost.epilogue = model.epilogue_us * c.block_n / 256;  // the last tile's: others are hidden
  choice.cost.total =
      choice.cost.launch + std::max(choice.cost.tensor, choice.cost.l2) + choice.cost.epilogue;
  return choice;
}

GemmSm90Params FamilyTraits<GemmSm100Family>::lower(Machine const& machine,
                                                    GemmArguments const& arguments,
                                                    GemmSm100Config const& c,
                                                    GemmChoice const& choice) {
  GemmArguments const g = with_defaults(arguments);
  // Where tiles are dealt while the grid runs, there is a cluster for each.
  int const clusters = c.launched ? choice.tiling.tiles : choice.clusters;
  return {.problem = tma_problem(machine, g, a_fetch(c), b_fetch(c)),
          .schedule = {.clusters = clusters,
                       .initial_tiles =
                           c.launched ? InitialTiles{}
                                      : initial_tiles(choice.tiling, tile_widths(c), clusters,
                                                      cluster_size(c), machine.multiprocessors()),
                       .tiling = choice.tiling},
          .epilogue = tma_epilogue(machine, g, epilogue(c), false)};
}

}  // namespace tegula::device
