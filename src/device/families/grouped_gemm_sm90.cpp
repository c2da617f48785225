// What a launch of grouped_gemm_sm90 is predicted to take, and what it is launched with.

#include "grouped_gemm_sm90.hpp"

#include <algorithm>
#include <cmath>

#include "backend.hpp"
#include "expected_tiles.hpp"
#include "grouped_gemm_tensors.hpp"
#include "tegula/device/gemm_plan.hpp"
#include "tegula/device/tensor_map.hpp"
#include "tma_gemm.hpp"

namespace tegula::device {
namespace {

using Traits = FamilyTraits<GroupedGemmSm90Family>;

/// What this kernel does in which time, beside GemmCostModel. Tuned for speed, not correctness:
/// fitted to the table's configurations, measured on an H100 on 2026-11-27 at DeepGEMM's list with
/// m of 64, 128 and 4096 and at its groups. With that the choices of dense problems and of
/// contiguous groups took 0.6 % longer than the fastest of the table in the mean, 6 % at the most,
/// and the predictions of what is not far from the fastest erred by 8 %. What straddling and
/// clusters cost was set anew by hand on an H200 (decisions 181, 185 and 186); decision 182 has the
/// errors since then, 6 to 9 % in the median and 17 % at groups of k. (An epilogue's two parts are
/// such that 4096 x 32768 x 512, 32 tiles a CTA of 4 steps each, has the tile that was the fastest
/// on an H200.)
struct PromotionModel {
  /// Cycles from the end of a wave's products to the first that follow them in the same consumer,
  /// beside one for each multiply-add of the promotion: the wait, the scales, the next issue.
  double cycles = 144;
  double queued = 29.8;       ///< the same, where the next products are queued before that
  double unlike = 0.0202;     ///< of the tensor core's time, that two consumers wait for each other
  double straddling = 0.065;  ///< of a step's time, more where a tile may have two blocks of B
  double straddling_us = 0.16;  ///< more for such a tile of two consumers: single steps come first
  double launch_us = 4.72;
  double cluster_us = 0.5;  ///< more, where CTAs multicast to each other: they begin together
  double fetch_latency_cycles = 1430;  ///< until a stage's loads have arrived
  double l2_bytes_per_cycle = 13970;   ///< from L2 to all SMs
  double clustered_fetch = 1.1;        ///< times as long, where CTAs wait for their peers' loads
  /// Of B's bytes that clusters along M do not fetch twice, the share that counts: neighbours along
  /// M read B at about one time, cluster or not.
  double shared_b = 0.95;
  double clustered_memory = 1.1;     ///< times as long for what comes from memory, in a cluster
  double dram_share = 0.848;         ///< of the memory's bandwidth
  double least_epilogue_us = 0.3;    ///< of a tile without columns
  double epilogue_us = 0.47;         ///< more for 128 accumulators a thread
  double reduction_us = 0.467;       ///< more, where a cluster shares K
  double reduction_tile_us = 0.976;  ///< more for each share of 128 accumulators a thread
  double overlap_loss = 0.309;
  double kept_share = 0.25;  ///< of L2, that a group's A may take to stay there
};

/// A map of scales, of boxes of `box` rows of one block: (rows, blocks, groups).
TensorMapDescription describe_scales(float const* scales, std::int64_t rows, std::int64_t blocks,
                                     std::int64_t groups, std::int64_t stride, int box) {
  return {.dtype = DType::f32,
          .rank = 3,
          .address = scales,
          .extents = {rows, blocks, groups},
          .strides = {stride * 4, stride * blocks * 4},
          .box = {box, 1, 1}};
}

/// How D leaves: by TMA where it takes whole vectors of D, and C is none or D itself, of f32.
GroupedStore store_of(GroupedGemmOutput const& out, DType type) {
  bool const in_place = out.c == out.d && out.ldc == out.ldd &&
                        out.c_group_stride == out.d_group_stride && type == DType::f32;
  if (!out.vectors || (out.c != nullptr && !in_place)) return GroupedStore::rows;
  return out.c == nullptr ? GroupedStore::pieces : GroupedStore::added;
}

/// An operand's map. (Pieces of 256 bytes gave 2.5 % at a depth of 512, and nothing elsewhere.)
TensorMap encode_operand(Machine const& machine, TmaMatrices const& x, TmaBoxes const& boxes) {
  TensorMapDescription description = tegula::describe(x, boxes);
  description.l2_promotion = TmaL2Promotion::b256;
  return encode(machine, description);
}

/// As described, but for one operand where its scales are not read: any map does.
TensorMap encode_or(Machine const& machine, bool read, TensorMapDescription const& description,
                    TensorMap const& otherwise) {
  return read ? encode(machine, description) : otherwise;
}

}  // namespace

GroupedGemmChoice Traits::predict(GroupedGemmArguments const& arguments,
                                  GroupedGemmSm90Config const& c, DeviceProperties const& device,
                                  GroupedGemmConstraints const& wanted) {
  GroupedGemmArguments const g = with_defaults(arguments);
  GemmCostModel const model;
  PromotionModel const promoted;
  bool const by_k = g.grouping == Grouping::k, scaled = c.scales != Scales::none;
  double const cycles_per_us = 1e3 * model.clock_share * device.clock_ghz;
  std::int64_t const rows = *g.expected_rows, depth = by_k ? ceil_div(g.k, g.groups) : g.k;
  std::int64_t const tiles_m = ceil_div(std::max<std::int64_t>(rows, 1), cluster_rows(c));
  std::int64_t const tiles_n = ceil_div(g.n, cluster_columns(c));
  // Groups' rows differ, but those of a single group that has all there are.
  bool const masked = g.grouping == Grouping::masked;
  RowsOfTiles const expected = masked || (g.groups > 1 && has_many_b(g.grouping))
                                   ? rows_of_tiles(g.groups, rows, g.m, cluster_rows(c), !masked)
                                   : RowsOfTiles{static_cast<double>(g.groups * tiles_m)};
  std::int64_t const tiles =
      std::llround(expected.mean * static_cast<double>(tiles_n));  // of clusters
  int const side_by_side = resident_clusters(cluster_size(c), device, model);
  int const resident = side_by_side * c.min_ctas_per_sm;
  // The groups may differ from what is expected: as many clusters as there may be tiles.
  std::int64_t const most = (ceil_div(rows_of_a(g), cluster_rows(c)) + g.groups) * tiles_n;
  GroupedGemmChoice choice;
  choice.clusters = wanted.clusters.value_or(
      static_cast<int>(std::min<std::int64_t>(resident, by_k ? tiles : most)));

  // A step of one CTA: the products of its waves, of each 4 instructions, and the promotion of
  // each, during which the tensor core has the other consumer's products, or the next ones.
  double const instruction = std::max(64.0 * c.block_n * 16 / model.multiply_adds_per_cycle,
                                      32.0 * (64 + c.block_n) / model.operand_bytes_per_cycle);
  double const promotion =
      !scaled ? 0
      : partials(c) == 2
          ? promoted.queued
          : c.block_n / 2.0 * (c.scales == Scales::rows_by_rows ? 2 : 1) + promoted.cycles;
  int const at_once =  // CTAs on the busiest SM
      static_cast<int>(std::min<std::int64_t>(c.min_ctas_per_sm, ceil_div(tiles, side_by_side)));
  double const products_of_step = 4 * instruction * (c.block_m / 64);
  bool const straddles = c.scales == Scales::rows_by_blocks && kScaleBlock % c.block_n != 0;
  double const step =
      (std::max(products_of_step * at_once, waves(c) * (4 * instruction + promotion)) +
       (scaled && consumers(c) == 2 ? promoted.unlike * products_of_step : 0)) *
      (straddles ? 1 + promoted.straddling : 1);
  double const all_steps = static_cast<double>(ceil_div(depth, block_k(c)));
  double const steps = std::ceil(all_steps / c.split_k);  // of one CTA
  // From L2, for each CTA.
  double const fetched = static_cast<double>(stage_bytes(c)) -
                         a_fetch(c).bytes * (1 - 1.0 / c.cluster_n) -
                         promoted.shared_b * b_fetch(c).bytes * (1 - 1.0 / c.cluster_m);

  GroupedGemmCost& cost = choice.cost;
  cost.tiles =
      tiles * c.cluster_m * c.cluster_n;  // as many CTAs, or with split_k that many clusters
  cost.waves = static_cast<int>(ceil_div(tiles, resident));
  double const turns = expected.turns(tiles_n, resident);
  double const products = turns * steps;
  cost.tensor = products * step / cycles_per_us;
  cost.l2 = static_cast<double>(cost.tiles) * all_steps * fetched /
            (promoted.l2_bytes_per_cycle * cycles_per_us);
  bool const multicast = c.cluster_m * c.cluster_n > 1;
  if (multicast) cost.l2 *= promoted.clustered_fetch;
  double const read_rows = static_cast<double>(g.groups * rows) / (by_k ? g.groups : 1);
  double const operands =
      (read_rows + static_cast<double>(by_k || g.grouping == Grouping::none ? 1 : g.groups) * g.n) *
      static_cast<double>(g.k) * bytes_of(g.in);
  double const written = static_cast<double>(g.groups * rows) * static_cast<double>(g.n) *
                         bytes_of(*g.out) * (g.c == nullptr ? 1 : 2);
  // Few CTAs cannot keep memory busy: one has so many bytes under way, a latency apart.
  double const busy = std::min<double>(
      1, static_cast<double>(std::min<std::int64_t>(tiles, resident)) * cluster_size(c) *
             stages(c) * fetched / (promoted.fetch_latency_cycles / cycles_per_us) /
             (promoted.dram_share * device.memory_tb_per_s * 1e6));
  cost.dram = (operands + written) / (promoted.dram_share * device.memory_tb_per_s * 1e6 * busy);
  if (multicast) cost.dram *= promoted.clustered_memory;
  double const part = static_cast<double>(c.block_m) / consumers(c) * epilogue_n(c) / 128 / 128;
  double epilogue = promoted.least_epilogue_us + part * promoted.epilogue_us;
  if (straddles && consumers(c) == 2) epilogue += promoted.straddling_us;
  if (c.split_k > 1)
    epilogue += promoted.reduction_us + part * (c.split_k - 1) * promoted.reduction_tile_us;
  cost.epilogue = turns * epilogue;
  double const longest = std::max({cost.tensor, cost.l2, cost.dram});
  cost.total = promoted.launch_us + (multicast ? promoted.cluster_us : 0) + model.fill_us +
               longest + cost.epilogue +
               promoted.overlap_loss * (cost.tensor + cost.l2 + cost.dram - longest);

  // The tiles of one round form a block about as high as wide. Where A of a group is small beside
  // L2, it stays there: then a band has all of the group's rows, and B is read once. (Groups may
  // have more rows than are expected.)
  double const in_flight =
      std::min<double>(static_cast<double>(resident), static_cast<double>(tiles));
  int const square =
      static_cast<int>(std::lround(std::sqrt(in_flight * cluster_columns(c) / cluster_rows(c))));
  double const a_of_group = static_cast<double>(rows) * static_cast<double>(depth) * bytes_of(g.in);
  bool const stays = a_of_group < promoted.kept_share * device.l2_mb * 1e6;
  std::int64_t const high = stays ? 2 * tiles_m : std::min<std::int64_t>(square, tiles_m);
  choice.band = wanted.band.value_or(static_cast<int>(std::clamp<std::int64_t>(high, 1, 64)));
  return choice;
}

GroupedGemmSm90Params Traits::lower(Machine const& machine, GroupedGemmArguments const& arguments,
                                    GroupedGemmChoice const& choice) {
  GroupedGemmArguments const g = with_defaults(arguments);
  GroupedGemmSm90Config const& c = configuration(grouped_gemm_sm90, choice.configuration);
  std::int64_t const rows = rows_of_a(g), blocks = scale_blocks(g),
                     groups_b = has_many_b(g.grouping) ? g.groups : 1;
  bool const by_k = g.grouping == Grouping::k;
  TmaMatrices const a = {g.in, g.a, rows, g.k, 1, *g.lda, 0};
  TmaMatrices const b = {*g.in_b, g.b, g.n, g.k, groups_b, *g.ldb, *g.b_group_stride};
  TmaMatrices const d = {*g.out,           g.d, by_k ? g.m : rows, g.n, by_k ? g.groups : 1, *g.ldd,
                         *g.d_group_stride};
  TensorMap const map_a = encode_operand(machine, a, a_fetch(c));
  GroupedGemmOutput const out = grouped_output(g);
  GroupedStore const store = c.split_k > 1 ? GroupedStore::rows : store_of(out, *g.out);
  PerPiece<TmaBoxes> const pieces = store_boxes(epilogue(c));
  bool const by_tma = store != GroupedStore::rows;
  return {
      .a = map_a,
      .b = encode_operand(machine, b, b_fetch(c)),
      .scale_a = encode_or(
          machine, c.scales != Scales::none,
          describe_scales(g.scale_a, rows, blocks, 1, *g.scale_a_stride, scale_box(c)), map_a),
      .scale_b = encode_or(
          machine, c.scales == Scales::rows_by_rows,
          describe_scales(g.scale_b, g.n, blocks, groups_b, *g.scale_b_stride, c.block_n), map_a),
      .d = encode_or(machine, by_tma, tegula::describe(d, pieces.whole), map_a),
      .last_d = encode_or(machine, by_tma, tegula::describe(d, pieces.last), map_a),
      .tiles = group_tiles(g, cluster_columns(c), choice.band),
      .clusters = choice.clusters,
      .b_blocks = {.scale = g.scale_b,
                   .blocks_n = static_cast<int>(ceil_div(g.n, kScaleBlock)),
                   .blocks_k = static_cast<int>(blocks)},
      .out = out,
      .store = store};
}

}  // namespace tegula::device
