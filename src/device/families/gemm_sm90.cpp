// What a launch of gemm_sm90 takes by the model of its cost, and what it is launched with, tensor
// maps included.

#include "gemm_sm90.hpp"

#include <cmath>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "backend.hpp"
#include "gemm_sm90_correction.hpp"
#include "tegula/io/text.hpp"
#include "tma_gemm.hpp"

namespace tegula {
namespace device {
namespace {

/// What a configuration's stages come to.
struct Stages {
  TmaBoxes a, b;  ///< that bring one
  int count, bytes;

  explicit Stages(GemmSm90Config const& c)
      : a(a_fetch(c)), b(b_fetch(c)), count(stages(c)), bytes(stage_bytes(c)) {}
};

/// Worked out once for the table's configurations: to compose the layouts that these follow from
/// takes longer than a prediction.
Stages stages_of(GemmSm90Config const& c) {
  std::span<GemmSm90Config const> const table = configurations(gemm_sm90, Kernels::all);
  static std::vector<Stages> const of_table(table.begin(), table.end());
  std::less<> const before;
  if (before(&c, table.data()) || !before(&c, table.data() + table.size())) return Stages(c);
  return of_table[static_cast<std::size_t>(&c - table.data())];
}

/// A cluster's tile, and what it reads of A and B.
struct ClusterTile {
  int m, n;             ///< elements of D
  double a_row, b_row;  ///< bytes of a row of A, of a column of B: of K, or of a part of it
};

/// The order of tiles, each computed in `parts` parts of K: in bands of `group` tiles across the
/// raster axis, or else such that the tiles in flight read about as many bytes of A as of B; and
/// the bytes that come from memory.
struct Order {
  TileScheduler scheduler;
  double dram_bytes;  ///< of A and B, all batches
};
Order order_tiles(GemmArguments const& g, ClusterTile const& tile, int parts, int in_flight,
                  Raster raster, std::optional<int> group, double l2_mb) {
  int const tiles_m = static_cast<int>(ceil_div(g.m, tile.m)),
            tiles_n = static_cast<int>(ceil_div(g.n, tile.n));
  bool const along_n = raster == Raster::along_n;
  int const tiles_across = along_n ? tiles_m : tiles_n;
  double const across = along_n ? tile.m * tile.a_row : tile.n * tile.b_row,
               along = along_n ? tile.n * tile.b_row : tile.m * tile.a_row;
  int const square = static_cast<int>(std::lround(std::sqrt(in_flight * along / across)));
  int const wanted = std::clamp(group.value_or(square), 1, tiles_across);
  // Bands of equal height, about the wanted one.
  int const equal = std::max(1, (tiles_across + wanted / 2) / wanted);
  TileScheduler const s{.tiles_m = tiles_m,
                        .tiles_n = tiles_n,
                        .batches = static_cast<int>(g.batch) * parts,
                        .raster = raster,
                        .group = group ? wanted : static_cast<int>(ceil_div(tiles_across, equal))};
  int const bands = static_cast<int>(ceil_div(tiles_across, s.group));

  // The operand across stays in L2 for its band; the one along comes again for each band, unless L2
  // holds it beside what the band reads across and writes.
  double const a = static_cast<double>(g.m) * tile.a_row, b = static_cast<double>(g.n) * tile.b_row;
  double const d = static_cast<double>(g.m) * static_cast<double>(g.n) * bytes_of(*g.out);
  double const streamed = along_n ? b : a, kept = along_n ? a : b;
  double const times = streamed + (kept + d) / bands <= l2_mb * 1e6 ? 1 : bands;
  bool const streamed_shared = (along_n ? *g.b_batch_stride : *g.a_batch_stride) == 0;
  bool const kept_shared = (along_n ? *g.a_batch_stride : *g.b_batch_stride) == 0;
  auto const batches = [&](bool shared, double bytes) {
    return shared && bytes <= l2_mb * 1e6 ? 1.0 : static_cast<double>(g.batch);
  };
  return {s, parts * (times * streamed * batches(streamed_shared, streamed) +
                      kept * batches(kept_shared, kept))};
}

/// What a step along K loads of an operand, by TMA.
struct StepLoads {
  double row;          ///< bytes that a row costs L2
  double whole, last;  ///< bytes of a tile's rows, and of those of the last tile
  double zero_rows;    ///< that TMA writes of the last tile
};

std::optional<int> rows_of_last_tile(TmaBoxes const& boxes, std::int64_t extent);

/// A step brings 128 bytes of each row. Where rows begin inside of lines of 128 bytes, or of
/// sectors of 32, these lie in two.
StepLoads step_loads(std::int64_t extent, std::int64_t ld, Major major, DType type,
                     TmaBoxes const& boxes, GemmSm90CostModel const& model) {
  double row = 128;
  if (major == Major::k && extent > 1) {
    if (ld * bytes_of(type) % 128 != 0) row *= model.straddling;
    if (ld * bytes_of(type) % 32 != 0) row *= model.sector;
  }
  std::int64_t const tile = rows_of_tile(boxes);
  std::int64_t const rest = extent % tile == 0 ? tile : extent % tile;
  return {.row = row,
          .whole = row * static_cast<double>(std::min(extent, tile)),
          .last = row * static_cast<double>(rest),
          .zero_rows = rows_of_last_tile(boxes, extent) ? 0 : static_cast<double>(tile - rest)};
}

/// The rows that the boxes of an operand's last tile bring, where they are fewer than a tile's
/// (kernel/gemm_unloaded_rows.hpp).
std::optional<int> rows_of_last_tile(TmaBoxes const& boxes, std::int64_t extent) {
  if (!can_be_cut(boxes) || extent < 1) return {};
  int const tile = rows_of_tile(boxes), rest = static_cast<int>((extent - 1) % tile + 1);
  if (rows_of_tile(first_rows(boxes, rest)) == tile) return {};
  return rest;
}

/// Clusters' tiles of D, of all batches.
std::int64_t tiles_of(GemmArguments const& g, GemmSm90Config const& c) {
  return ceil_div(g.m, std::int64_t{c.block_m} * c.cluster_m) *
         ceil_div(g.n, std::int64_t{c.block_n} * c.cluster_n) * g.batch;
}

/// `parts`: of K, for the clusters that share a tile. `g`: as_computed_by.
GemmChoice predict_parts(GemmArguments const& g, GemmSm90Config const& c, int parts,
                         DeviceProperties const& device, GemmConstraints const& wanted,
                         GemmCostModel const& general) {
  GemmSm90CostModel const& model = general.sm90;
  double const cycles_per_us = 1e3 * model.clock_share * device.clock_ghz;
  int const k_steps = static_cast<int>(ceil_div(g.k, block_k(c)));
  int const steps = static_cast<int>(ceil_div(k_steps, c.split_k * parts));  // of a CTA's tile
  double const k_of_part = static_cast<double>(g.k) / parts;
  ClusterTile const tile{c.block_m * c.cluster_m, c.block_n * c.cluster_n,
                         k_of_part * bytes_of(g.in), k_of_part * bytes_of(*g.in_b)};
  int const resident = resident_clusters(cluster_size(c), device, general);
  bool const cooperative = c.schedule == Schedule::cooperative,
             pingpong = c.schedule == Schedule::pingpong;

  GemmChoice choice{.kernel = gemm_sm90, .parts = parts};
  auto const tiles_m = ceil_div(g.m, tile.m), tiles_n = ceil_div(g.n, tile.n);
  int const tiles = static_cast<int>(tiles_of(g, c)) * parts;  // and parts of such
  // With split_k a cluster computes its tiles and no more: there are as many as those take.
  choice.clusters = c.split_k > 1 ? tiles : std::min(tiles, resident * c.min_ctas_per_sm);
  int const ctas = choice.clusters * cluster_size(c);
  int waves = static_cast<int>(ceil_div(tiles, resident));

  // One tile on one SM. wgmma takes 32 bytes along K at a time, of 64 rows of A and block_n columns
  // of B.
  double const instructions = 4.0 * steps * (c.block_m / 64);
  double const instruction_cycles =
      std::max(64.0 * c.block_n * 16 / model.multiply_adds_per_cycle,
               32.0 * (64 + c.block_n) / model.operand_bytes_per_cycle);
  double const main = instructions * instruction_cycles / cycles_per_us;

  Stages const ring = stages_of(c);
  StepLoads const a = step_loads(g.m, *g.lda, g.a_major, g.in, ring.a, model),
                  b = step_loads(g.n, *g.ldb, g.b_major, *g.in_b, ring.b, model);
  double const sm_bytes =
      model.sm_bytes_per_cycle * (consumers(c) == 1 ? model.basic_share : 1) *
      (1 + model.idle_gain * std::max(0.0, 1 - static_cast<double>(ctas) / device.multiprocessors));
  // What comes by multicast, of a tile that is not shared.
  auto const cost = [&](double bytes, int peers) {
    return c.split_k > 1 || cluster_size(c) == 1
               ? bytes
               : bytes * (1 - (1 - model.multicast_cost) * (1 - 1.0 / peers));
  };
  double const whole_step = (cost(a.whole, c.cluster_n) + cost(b.whole, c.cluster_m)) / sm_bytes;
  // The tiles at the ends, which TMA fills up with zeros.
  double const last_of_m = g.m > c.block_m ? (a.last + b.whole) / sm_bytes : whole_step,
               last_of_n = g.n > c.block_n ? (a.whole + b.last) / sm_bytes : whole_step;
  double const fetch =
      steps *
      std::max({whole_step, last_of_m + a.zero_rows / c.cluster_n * model.zero_row_cycles,
                last_of_n + b.zero_rows / c.cluster_m * model.zero_row_cycles}) /
      cycles_per_us;
  // How far the loads run ahead: too little, and some come late.
  double const step_cycles =
      std::max(4.0 * (c.block_m / 64) * instruction_cycles, ring.bytes / model.sm_bytes_per_cycle);
  double const ahead = (ring.count - 1) * step_cycles / model.fetch_latency_cycles;
  double const late = model.late_loss * std::max(0.0, 1 - ahead);

  // The part of a full epilogue that this one is: by accumulators of a thread.
  int const columns = c.in_parts ? c.block_n : epilogue_n(c);
  double const part = static_cast<double>(consumer_m(c)) * columns / 128 / 128;
  double epilogue = model.least_epilogue_us + part * model.epilogue_us;
  if (c.transposed)
    epilogue += part * (c.store_buffers == 0 ? model.from_registers_us : model.transposed_us);
  if (!c.transposed && c.store_buffers != 2) epilogue += part * model.one_buffer_us;
  if (g.beta != 0) epilogue += part * model.read_c_us;
  if (c.split_k > 1)
    epilogue += model.reduction_us + model.reduction_cta_us * c.split_k +
                part * (c.split_k - 1) * model.reduction_tile_us +
                (cooperative ? model.reduction_cooperative_us : 0);
  // Tiles that an SM works on at a time: one's epilogue lies under the others' main loops.
  int const at_once = pingpong ? 2 : c.min_ctas_per_sm;

  double const d_bytes = static_cast<double>(g.batch) * static_cast<double>(g.m) *
                         static_cast<double>(g.n) * bytes_of(*g.out) * (g.beta != 0 ? 2 : 1);
  // Square blocks of tiles are the fastest order (measured) until memory takes about as long as the
  // tensor cores: then the order that reads least. CTAs side by side are on a pair of SMs, which
  // reads once what both want at the same time. So few tiles across are walked first, and else such
  // that neighbours share the operand of which a tile has more (measured at 89 problems, decision
  // 169).
  // Clusters go to the GPCs in turn: with the blocks about as many tiles across as there are GPCs,
  // those of a GPC share what is across, and L2 is read once for some of them.
  constexpr int few = 8;
  double const of_a = tile.m * tile.a_row, of_b = tile.n * tile.b_row;
  bool const as_many_as_gpcs = g.m > static_cast<std::int64_t>(general.gpcs) * tile.m;
  bool const down = cluster_size(c) > 1                 ? of_b > of_a && as_many_as_gpcs
                    : std::min(tiles_m, tiles_n) <= few ? tiles_n < tiles_m
                                                        : of_a > of_b;
  Raster const raster = down ? Raster::along_m : Raster::along_n;
  auto const order = [&](Raster raster, std::optional<int> group) {
    return order_tiles(g, tile, parts, resident, wanted.raster.value_or(raster),
                       wanted.group ? wanted.group : group, device.l2_mb);
  };
  auto const dram = [&](Order const& o) {
    return (o.dram_bytes + d_bytes) / (model.dram_share * device.memory_tb_per_s * 1e6);
  };
  Order best = order(raster, {});
  if (dram(best) > 0.65 * waves * main) {
    for (Order const& other :
         {order(Raster::along_n, static_cast<int>(tiles_m)), order(Raster::along_m, {})}) {
      if (dram(other) < dram(best)) best = other;
    }
  }
  // Clusters of which all share one operand: in bands of as many tiles as there are GPCs, those of
  // a GPC share the other one, too (2 to 5 % in one wave, decision 174).
  if ((c.cluster_m == 1) != (c.cluster_n == 1) && c.split_k == 1 && parts == 1 && waves <= 2) {
    Raster const other = c.cluster_n > 1 ? Raster::along_m : Raster::along_n;
    if ((other == Raster::along_m ? tiles_n : tiles_m) >= general.gpcs)
      best = order(other, general.gpcs);
  }
  double const memory = dram(best);

  // Where the last wave is not full, tiles of two widths; they share fewer operands with
  // their neighbours.
  TileWidths const widths = tile_widths(c);
  double const exposed = at_once > 1 ? 0 : epilogue;
  int const overhead = static_cast<int>(std::lround(widths.wide * exposed / main));  // in columns
  auto const share_of = [&](TilePartition const& tiling) {
    return static_cast<double>(longest_share(tiling, resident, widths, overhead)) /
           (widths.wide + overhead);
  };
  choice.tiling = best.scheduler;
  double share = waves;  // of the busiest SM, in tiles
  double const fitted_dram = pingpong ? model.fitted_dram_pingpong : model.fitted_dram_cooperative;
  if (wanted.fitted.value_or(memory < fitted_dram * waves * main)) {
    TilePartition const fitted =
        fit_tiles(best.scheduler, static_cast<int>(g.n), widths, choice.clusters, overhead);
    double const yield = pingpong ? model.fitted_yield_pingpong : model.fitted_yield_cooperative;
    double const fitted_share = waves - yield * (waves - share_of(fitted));
    if (fitted_share < (wanted.fitted ? 1 : 1 - model.fitted_gain) * waves) {
      choice.tiling = fitted;
      share = fitted_share;
      waves = static_cast<int>(ceil_div(fitted.tiles, resident));
    }
  }

  // Over many steps clusters get out of step, and what they share is read from memory again.
  double const operands = static_cast<double>(g.batch) * (static_cast<double>(g.m) * tile.a_row +
                                                          static_cast<double>(g.n) * tile.b_row);
  if (c.split_k == 1 && parts == 1 && choice.tiling.tiles > choice.clusters &&
      k_steps >= model.paced_steps && operands > model.paced_mb * 1e6)
    choice.lockstep_steps = model.lockstep_steps;

  // What the CTAs of a cluster share leaves L2 once; and so, about, does what two neighbours share
  // that are launched together and walk in step (measured at two rows of tiles, or two columns).
  TileScheduler const& walk = best.scheduler;
  bool const in_step = cluster_size(c) == 1 && walk.group == 2;
  double const twice_a = in_step && walk.raster == Raster::along_m && walk.tiles_n == 2 ? 2 : 1,
               twice_b = in_step && walk.raster == Raster::along_n && walk.tiles_m == 2 ? 2 : 1;
  double const all_a = static_cast<double>(g.m) * a.row, all_b = static_cast<double>(g.n) * b.row;
  double const from_l2 = static_cast<double>(g.batch) * k_steps *
                         (static_cast<double>(tiles_n) * all_a / twice_a +
                          static_cast<double>(tiles_m) * all_b / twice_b);
  // A tile of A that all clusters of a row of tiles read at a time, or of B: where its lines lie
  // close together, they are of few of L2's slices.
  auto const hot = [&](std::int64_t rows, Major major, std::int64_t ld, DType type,
                       std::int64_t readers) {
    double const bytes = static_cast<double>(rows * g.k * bytes_of(type)),
                 lines = static_cast<double>(major == Major::k ? rows : g.k),
                 span = lines * static_cast<double>(ld * bytes_of(type));
    return static_cast<double>(std::min<std::int64_t>(readers, choice.clusters)) * bytes /
           (model.hot_bytes_per_cycle * std::max(1.0, span / model.hot_span));
  };
  double const hottest =
      std::max(hot(std::min<std::int64_t>(g.m, c.block_m), g.a_major, *g.lda, g.in, tiles_n),
               hot(std::min<std::int64_t>(g.n, c.block_n), g.b_major, *g.ldb, *g.in_b, tiles_m));

  GemmCost& result = choice.cost;
  result.tiles = (c.split_k > 1 ? tiles : choice.tiling.tiles) / parts * c.cluster_m * c.cluster_n;
  result.waves = waves;
  result.share = share;
  result.launch = model.launch_us + model.cluster_us * std::log2(cluster_size(c)) +
                  (ctas > device.multiprocessors ? model.second_us : 0);
  result.fill = model.fill_us + share * (main * late + model.step_us * steps);
  // Clusters that share K are launched one after another: each begins with an empty ring.
  if (c.split_k > 1) result.fill += (waves - 1) * model.relaunch_us / c.min_ctas_per_sm;
  result.tensor = share * main;
  result.l2 = std::max({from_l2 / (model.l2_bytes_per_cycle * cycles_per_us), share * fetch,
                        hottest / cycles_per_us});
  if (cooperative) result.l2 *= model.cooperative_fetch;
  if (c.cluster_m * c.cluster_n > 1 || (cooperative && c.split_k > 1))
    result.l2 *= model.clustered_fetch;
  result.dram = memory;
  double const fetched_in = std::max(result.l2, result.dram);
  // Memory is kept less busy by those SMs that have a tile in the last of several waves.
  if (waves > 1 && result.dram > result.tensor && result.dram >= result.l2)
    result.fill +=
        model.uneven_loss * result.dram * (1 - static_cast<double>(tiles) / (resident * waves));
  // Where tensor cores or L2 set the pace, SMs finish in step: the last tiles are stored by all at
  // once, as fast as L2 takes them.
  double const stored = static_cast<double>(ctas) * c.block_m * c.block_n * bytes_of(*g.out) /
                        (model.store_tb_per_s * 1e6);
  double const last =
      result.dram > result.tensor || c.split_k > 1 ? epilogue : std::max(epilogue, stored);
  // The consumers' way: main loops one after another and the last epilogue, or, where those take
  // longer than what they lie under, a main loop and its epilogue for each turn.
  double const turns = std::ceil(share / at_once - 1e-6);
  double const turn =
      share / waves * main + epilogue * (1 - model.early_epilogue * (1 - 1.0 / waves));
  double const consumed = std::max(result.tensor + last, turns * turn);
  // The loads' way: they run ahead of epilogues.
  double const loaded = fetched_in + last;
  double const hidden =
      result.tensor + result.l2 + result.dram - std::max(result.tensor, fetched_in);
  result.total =
      result.launch + result.fill + std::max(consumed, loaded) + model.overlap_loss * hidden;
  result.epilogue = std::max(consumed, loaded) - std::max(result.tensor, fetched_in);
  if (parts > 1) {
    // All parts leave their sums. Each takes those of a share of the tile's pieces, or, where a CTA
    // goes on with another tile, the last to arrive takes all.
    int const pieces = consumer_m(c) / 64 * (c.block_n / epilogue_n(c)),
              taken = waves > 1 ? pieces : static_cast<int>(ceil_div(pieces, parts));
    double const tile_bytes = 4.0 * c.block_m * c.block_n;
    double const together = model.parts_us + parts * model.part_us +
                            tile_bytes *
                                (1 / model.parts_stored_per_cycle +
                                 parts * taken / (pieces * model.parts_taken_per_cycle)) /
                                cycles_per_us;
    result.epilogue += together;
    result.total += together;
  }
  if (model.corrected) {
    result.correction =
        std::max(model.least_correction,
                 gemm_sm90_correction(gemm_sm90_features(g, c, choice, ring.count, device)));
    result.total *= result.correction;
  }
  return choice;
}

}  // namespace

int FamilyTraits<GemmSm90Family>::most_parts(GemmArguments const& g, GemmSm90Config const& c) {
  if (!c.in_parts) return 1;
  std::int64_t const tiles = tiles_of(g, c);
  // Arrivals are numbered as the tiling numbers the tiles of part 0: of several batches, parts
  // lie between them.
  std::int64_t const arrivals = std::int64_t{cluster_size(c)} * warps_of_tile(c) * tiles;
  auto const fits = [&](std::int64_t parts) {
    return arrivals * (g.batch == 1 ? 1 : parts) <= kMostArrivals;
  };
  std::int64_t most = std::min<std::int64_t>(
      kMostParts, g.workspace_bytes / (part_bytes(c) * std::min(tiles, kMaxExtent)));
  while (most > 1 && !fits(most)) --most;
  return static_cast<int>(most);
}

std::int64_t FamilyTraits<GemmSm90Family>::workspace_bytes(GemmArguments const& arguments,
                                                           GemmChoice const& choice) {
  GemmSm90Config const& c = configuration(gemm_sm90, choice.configuration);
  if (choice.parts == 1) return 0;
  return tiles_of(as_computed_by(c, with_defaults(arguments)), c) * choice.parts * part_bytes(c);
}

GemmChoice FamilyTraits<GemmSm90Family>::predict(GemmArguments const& arguments,
                                                 GemmSm90Config const& c,
                                                 DeviceProperties const& device,
                                                 GemmConstraints const& wanted,
                                                 GemmCostModel const& model) {
  GemmArguments const g = as_computed_by(c, with_defaults(arguments));
  if (!c.in_parts) return predict_parts(g, c, 1, device, wanted, model);
  if (wanted.split_k) return predict_parts(g, c, *wanted.split_k, device, wanted, model);
  // Of at least a step, and up to two waves.
  std::int64_t const resident = resident_clusters(cluster_size(c), device, model);
  std::int64_t const most = std::min<std::int64_t>(
      {most_parts(g, c), ceil_div(g.k, block_k(c)), 2 * resident / tiles_of(g, c)});
  GemmChoice best = predict_parts(g, c, 2, device, wanted, model);
  for (int parts = 3; parts <= most; ++parts) {
    GemmChoice const choice = predict_parts(g, c, parts, device, wanted, model);
    if (choice.cost.total < best.cost.total) best = choice;
  }
  return best;
}

std::string FamilyTraits<GemmSm90Family>::remark(GemmArguments const& arguments,
                                                 GemmChoice const& choice) {
  TilePartition const& tiling = choice.tiling;
  if (choice.parts > 1)
    return fmt::format("each tile's k is computed in {} parts, whose sums take {} of workspace",
                       choice.parts, io::counted(workspace_bytes(arguments, choice), "byte"));
  if (!tiling.fitted()) return {};
  GemmSm90Config const& c = configuration(gemm_sm90, choice.configuration);
  GemmArguments const g = as_computed_by(c, with_defaults(arguments));
  TileWidths const widths = tile_widths(c);
  std::int64_t const equal =
      ceil_div(g.m, c.block_m * c.cluster_m) * ceil_div(g.n, widths.wide) * g.batch;
  return fmt::format(
      "for {} clusters D is cut into {}: the busiest cluster computes {:.2f} tiles' worth, not {}",
      choice.clusters, to_string(tiling, widths),
      static_cast<double>(longest_share(tiling, choice.clusters, widths)) / widths.wide,
      ceil_div(equal, choice.clusters));
}

}  // namespace device

GemmSm90Params lower(Machine const& machine, GemmArguments const& arguments,
                     GemmChoice const& choice) {
  GemmSm90Config const& c = configuration(gemm_sm90, choice.configuration);
  GemmArguments const g = device::as_computed_by(c, with_defaults(arguments));
  int const most = device::FamilyTraits<GemmSm90Family>::most_parts(g, c);
  if (choice.parts < 1 || choice.parts > most)
    throw argument_error(fmt::format(
        "gemm: the choice is of {} of k, and the arguments, with {} of workspace, allow at most "
        "{}; it must be chosen for such arguments.",
        io::counted(choice.parts, "part"), io::counted(g.workspace_bytes, "byte"), most));
  bool const meet = choice.lockstep_steps > 0 && c.split_k == 1 && choice.parts == 1;
  // Of tiles of two widths the last one begins elsewhere.
  device::Stages const ring = device::stages_of(c);
  std::optional<int> const rows_b =
      choice.tiling.fitted() ? std::nullopt : device::rows_of_last_tile(ring.b, g.n);
  return {
      .problem = device::tma_problem(machine, g, ring.a, ring.b,
                                     device::rows_of_last_tile(ring.a, g.m), rows_b),
      .schedule = {.clusters = choice.clusters,
                   .initial_tiles = initial_tiles(choice.tiling, tile_widths(c), choice.clusters,
                                                  cluster_size(c), machine.multiprocessors()),
                   .tiling = choice.tiling,
                   .lockstep_steps = choice.lockstep_steps,
                   .lockstep = meet ? static_cast<LockstepCounters*>(
                                          machine.backend().workspace(sizeof(LockstepCounters)))
                                    : nullptr},
      .epilogue = device::tma_epilogue(machine, g, epilogue(c), choice.tiling.fitted()),
      .parts = {.tile = TileParts(choice.parts),
                .partial = {.sums = static_cast<float*>(g.workspace)}}};
}

}  // namespace tegula
