#pragma once

/// Problems whose GEMM plan is tested, and what every plan must keep.

#include <gtest/gtest.h>

#include <cstdint>
#include <map>

#include "addresses.hpp"
#include "gemm_params.hpp"
#include "tegula/device/arguments.hpp"
#include "tegula/device/gemm_plan.hpp"
#include "tegula/device/selection.hpp"

namespace tegula::testing {

inline constexpr DeviceProperties kH100 = properties_of(sim::Generation::sm90);
inline constexpr DeviceProperties kA100 = properties_of(sim::Generation::sm80);

inline constexpr std::int64_t kSizes[] = {1, 7, 8, 64, 100, 127, 128, 129, 1000, 4096, 100000};

inline GemmArguments problem(std::int64_t m, std::int64_t n, std::int64_t k) {
  return {.in = DType::bf16,
          .m = m,
          .n = n,
          .k = k,
          .a = at(0x1000),
          .b = at(std::uintptr_t{1} << 44),
          .d = at(std::uintptr_t{2} << 44)};
}

/// The model without what was learned: each of its terms has the effect that it says.
inline GemmCostModel model_alone() {
  GemmCostModel model;
  model.sm90.corrected = false;
  return model;
}

/// Whether the tiling's regions cover D, row of tiles by row, and no row of tiles lies beyond
/// its edges.
inline void expect_covers(GemmArguments const& g, GemmSm90Config const& c,
                          TilePartition const& tiling) {
  auto const [wide, narrow] = tile_widths(c);
  struct Rows {
    int count = 0;
    // those covered, from the first on; where the last tile begins
    std::int64_t columns = 0, last_tile = 0;
  };
  std::map<int, Rows> rows;  // by the first of them
  for (TileRegion const& region : tiling.regions) {
    if (region.first >= tiling.tiles) continue;
    TileScheduler const& s = region.order;
    int const width = tiling.narrow(region.first) ? narrow : wide;
    Rows& of_region = rows[region.m];
    EXPECT_TRUE(of_region.count == 0 || of_region.count == s.tiles_m)
        << to_string(g) << ": " << to_string(c);
    EXPECT_EQ(region.column, of_region.columns) << to_string(g) << ": " << to_string(c);
    of_region.count = s.tiles_m;
    of_region.columns += std::int64_t{s.tiles_n} * width;
    of_region.last_tile = of_region.columns - width;
    EXPECT_EQ(s.batches, g.batch);
    EXPECT_GE(s.group, 1);
    EXPECT_LE(s.group, s.raster == Raster::along_n ? s.tiles_m : s.tiles_n);
  }
  std::int64_t tiles_m = 0;
  for (auto const& [first, of_region] : rows) {
    EXPECT_EQ(first, tiles_m) << to_string(g) << ": " << to_string(c);
    tiles_m += of_region.count;
    EXPECT_GE(of_region.columns, g.n) << to_string(g) << ": " << to_string(c);
    EXPECT_LT(of_region.last_tile, g.n) << to_string(g) << ": " << to_string(c);
  }
  EXPECT_GE(tiles_m * c.block_m * c.cluster_m, g.m) << to_string(g) << ": " << to_string(c);
  EXPECT_LT((tiles_m - 1) * c.block_m * c.cluster_m, g.m) << to_string(g) << ": " << to_string(c);
}

/// Whether the choice's configuration is one of the problem's types and majors.
inline void expect_fits(GemmArguments const& arguments, GemmChoice const& choice) {
  GemmArguments g = with_defaults(arguments);
  if (choice.kernel == gemm_sm90) {
    GemmSm90Config const& c = configuration(gemm_sm90, choice.configuration);
    if (c.transposed) g = exchanged(g);
    EXPECT_TRUE(c.a == g.in && c.b == g.in_b && c.out == g.out) << to_string(c);
    EXPECT_TRUE(c.a_major == g.a_major && c.b_major == g.b_major) << to_string(c);
    EXPECT_EQ(c.activates, g.activation != Activation::none);
    expect_covers(g, c, choice.tiling);
    EXPECT_GE(choice.clusters, 1);
    EXPECT_LE(choice.clusters, choice.tiling.tiles);
    if (c.split_k > 1) {
      EXPECT_EQ(choice.clusters, choice.tiling.tiles) << "a cluster computes one tile";
    } else {
      EXPECT_LE(choice.clusters * cluster_size(c), 132 * c.min_ctas_per_sm);
    }
  } else {
    GemmConfig const& c = configuration(gemm_sm80, choice.configuration);
    EXPECT_TRUE(c.in == g.in && c.in == g.in_b && c.out == g.out) << to_string(c);
    EXPECT_TRUE(c.a_major == g.a_major && c.b_major == g.b_major) << to_string(c);
    EXPECT_LE(c.vector_bytes, vector_bytes(g));
  }
}

}  // namespace tegula::testing
