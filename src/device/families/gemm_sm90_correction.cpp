#include "gemm_sm90_correction.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>

#include "gemm_sm90_trees.hpp"
#include "problem.hpp"

namespace tegula::device {
namespace {

/// How the rows of an operand lie, `bytes` apart: whole lines of L2 (0), whole sectors (1), or
/// neither (2).
float alignment(std::int64_t bytes) { return bytes % 128 == 0 ? 0 : bytes % 32 == 0 ? 1 : 2; }

/// Whether each tree ends at one of its leaves: children come after their parents, and all of the
/// features, splits and leaves that are named are there.
constexpr bool are_whole() {
  std::size_t first = 0, leaves = 0;
  for (std::uint8_t const splits : trees::kSplitsOfTree) {
    if (first + splits > std::size(trees::kSplits)) return false;
    for (int node = 0; node < splits; ++node) {
      trees::Split const& split = trees::kSplits[first + static_cast<std::size_t>(node)];
      if (split.feature >= kGemmSm90Features) return false;
      for (int const child : {split.below, split.above})
        if (child <= node || child > 2 * splits) return false;
    }
    first += splits, leaves += splits + 1U;
  }
  return first == std::size(trees::kSplits) && leaves == std::size(trees::kLeaves);
}
static_assert(are_whole());

float number(auto value) { return static_cast<float>(value); }

/// The part of `tiles` tiles that lies within the extent.
float filled(std::int64_t extent, std::int64_t tiles, std::int64_t tile) {
  return number(extent) / number(tiles * tile);
}

}  // namespace

GemmSm90Features gemm_sm90_features(GemmArguments const& g, GemmSm90Config const& c,
                                    GemmChoice const& choice, int ring,
                                    DeviceProperties const& device) {
  GemmCost const& cost = choice.cost;
  std::int64_t const tile_m = std::int64_t{c.block_m} * c.cluster_m,
                     tile_n = std::int64_t{c.block_n} * c.cluster_n;
  std::int64_t const tiles_m = ceil_div(g.m, tile_m), tiles_n = ceil_div(g.n, tile_n);
  std::int64_t const steps = ceil_div(ceil_div(g.k, block_k(c)), c.split_k * choice.parts);
  std::int64_t const ctas = tiles_m * tiles_n * g.batch * choice.parts * cluster_size(c),
                     places = std::int64_t{device.multiprocessors} * c.min_ctas_per_sm,
                     waves = ceil_div(ctas, places);
  auto const share = [&](double us) { return number(us / cost.total); };
  auto const row = [&](Major major, std::int64_t ld, DType type) {
    return major == Major::k ? alignment(ld * bytes_of(type)) : 0;
  };
  return {number(std::log(cost.total)),
          share(cost.launch),
          share(cost.fill),
          share(cost.tensor),
          share(cost.l2),
          share(cost.dram),
          share(cost.epilogue),
          number(std::log2(static_cast<double>(steps))),
          number(std::min<std::int64_t>(waves, 8)),
          number(ctas) / number(places * waves),
          number(c.block_m),
          number(c.block_n),
          number(consumers(c)),
          number(static_cast<int>(c.schedule)),
          number(c.cluster_m),
          number(c.cluster_n),
          number(cluster_size(c)),
          number(c.split_k),
          number(choice.parts),
          number(ring),
          number(c.min_ctas_per_sm),
          number(!c.transposed          ? 0
                 : c.store_buffers != 0 ? 1
                                        : 2),
          row(g.a_major, *g.lda, g.in),
          row(g.b_major, *g.ldb, *g.in_b),
          alignment(*g.ldd * bytes_of(*g.out)),
          filled(g.m, tiles_m, tile_m),
          filled(g.n, tiles_n, tile_n),
          std::min(number(ctas) / number(device.multiprocessors), 4.0F),
          number(bytes_of(g.in)),
          number(choice.tiling.fitted()),
          number(std::min<std::int64_t>(tiles_m, 16)),
          number(std::min<std::int64_t>(tiles_n, 16))};
}

double gemm_sm90_correction(GemmSm90Features const& features) {
  double sum = 0;
  auto const* splits = std::begin(trees::kSplits);
  auto const* leaves = std::begin(trees::kLeaves);
  for (std::uint8_t const count : trees::kSplitsOfTree) {
    int node = 0;  // the tree's splits come first, then its leaves
    while (node < count) {
      trees::Split const& split = splits[node];
      node = features[split.feature] <= split.threshold ? split.below : split.above;
    }
    sum += trees::kLeafUnit * leaves[node - count];
    splits += count, leaves += count + 1;
  }
  return std::exp(sum);
}

}  // namespace tegula::device
