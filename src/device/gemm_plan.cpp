#include "tegula/device/gemm_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

#include "representative.hpp"
#include "tegula/device/launch.hpp"
#include "tegula/device/selection.hpp"

namespace tegula {
namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
int bytes_of(DType type) { return bits(type) / 8; }
char const* text(Major major) { return major == Major::k ? "k" : "mn"; }
char const* text(Schedule schedule) {
  constexpr char const* names[] = {"basic", "cooperative", "pingpong"};
  return names[static_cast<int>(schedule)];
}

/// The first rule of TMA that an operand breaks, in words; empty where it breaks none.
class TmaRules {
 public:
  explicit TmaRules(std::int64_t batch) : batch_(batch) {}

  static constexpr int alignment = 16;

  void operand(std::string_view name, void const* address, std::int64_t rows, std::int64_t ld,
               std::int64_t batch_stride, int element_bytes) {
    this->address(name, address, alignment);
    if (rows > 1) stride("ld", name, "", ld, element_bytes);
    if (batch_ > 1) stride("", name, "_batch_stride", batch_stride, element_bytes);
  }
  void address(std::string_view name, void const* value, int multiple) {
    auto const rest = reinterpret_cast<std::uintptr_t>(value) % static_cast<std::uintptr_t>(multiple);
    if (rest != 0 && obstacle_.empty())
      obstacle_ = fmt::format("{} is {}, {} bytes past a multiple of {}", name, value, rest, multiple);
  }
  std::string const& obstacle() const { return obstacle_; }

 private:
  void stride(std::string_view before, std::string_view name, std::string_view after, std::int64_t elements,
              int element_bytes) {
    constexpr std::int64_t limit = std::int64_t{1} << 40;  // bytes: cuTensorMapEncodeTiled's globalStrides
    if (!obstacle_.empty()) return;
    if (elements >= limit / element_bytes)
      obstacle_ = fmt::format("{}{}{} is {} elements of {} bytes, which is not below 2^40 bytes", before,
                              name, after, elements, element_bytes);
    else if (elements * element_bytes % alignment != 0)
      obstacle_ = fmt::format("{}{}{} is {} elements of {} bytes, which is not a multiple of {} bytes",
                              before, name, after, elements, element_bytes, alignment);
  }

  std::int64_t batch_;
  std::string obstacle_;
};

/// What tells a configuration apart from what the problem needs; null where it computes the problem.
char const* mismatch(GemmArguments const& g, GemmSm90Config const& c) {
  if (c.a != g.in || c.b != *g.in_b) return "other operand types";
  if (c.out != *g.out) return "another output type";
  if (c.a_major != g.a_major || c.b_major != g.b_major) return "other majors";
  if (c.activation != g.activation) return "another activation";
  return nullptr;
}
char const* mismatch(GemmArguments const& g, GemmConfig const& c, DeviceProperties const& device,
                     int vector) {
  if (c.in != g.in || c.in != *g.in_b) return "other operand types";
  if (c.out != *g.out) return "another output type";
  if (c.a_major != g.a_major || c.b_major != g.b_major) return "other majors";
  if (c.vector_bytes > vector) return "copies of 16 bytes, which the alignment rules out";
  if (static_cast<std::size_t>(shared_bytes(c)) > device.shared_bytes)
    return "more shared memory than the device has";
  return nullptr;
}

/// What tells a configuration apart from what the caller asks for; null where it is one of those.
char const* unwanted(GemmConstraints const& wanted, GemmSm90Config const& c, int index) {
  auto const differs = [](auto const& want, auto have) { return want && *want != have; };
  if (differs(wanted.kernel, GemmKernel::sm90)) return "another kernel is asked for";
  if (differs(wanted.configuration, index)) return "another configuration is asked for";
  if (differs(wanted.schedule, c.schedule)) return "another schedule is asked for";
  if (differs(wanted.block_m, c.block_m) || differs(wanted.block_n, c.block_n))
    return "another tile is asked for";
  if (differs(wanted.cluster_m, c.cluster_m) || differs(wanted.cluster_n, c.cluster_n))
    return "another cluster is asked for";
  if (differs(wanted.split_k, c.split_k)) return "another split of k is asked for";
  return nullptr;
}
/// Likewise of gemm_sm80, which is asked for by name, or by nothing that only gemm_sm90 has.
char const* unwanted(GemmConstraints const& wanted, int index) {
  bool const by_name = wanted.kernel == GemmKernel::sm80;
  if (wanted.kernel && !by_name) return "another kernel is asked for";
  if (wanted.configuration && (!by_name || *wanted.configuration != index))
    return "another configuration is asked for";
  if (wanted.schedule || wanted.block_m || wanted.block_n || wanted.cluster_m || wanted.cluster_n ||
      wanted.split_k || wanted.raster || wanted.group || wanted.fitted)
    return "what is asked for only gemm_sm90 has";
  return nullptr;
}

/// What keeps gemm_sm90 from a problem whatever the configuration; empty if nothing does.
std::string sm90_obstacle(GemmArguments const& g, DeviceProperties const& device) {
  if (device.compute_capability != 90) return fmt::format("the device is sm_{}", device.compute_capability);
  auto const obstacle = tma_obstacle(g);
  return obstacle.empty() ? obstacle : "TMA cannot address the problem: " + obstacle;
}

/// Clusters of `size` CTAs, one CTA an SM, that the device runs at a time: a cluster lies within a GPC, whose
/// SMs come in pairs.
int resident_clusters(int size, DeviceProperties const& device, GemmCostModel const& model) {
  int const sms = device.multiprocessors;
  int const whole = size <= 2 || sms < model.gpcs * size ? sms / size : sms / model.gpcs / size * model.gpcs;
  return std::max(1, whole);
}

/// How many bytes of A and of B one cluster's tiles read of each step along K.
struct ClusterTile {
  int m, n;             ///< elements of D
  double a_row, b_row;  ///< bytes of a row of A (of K), of a column of B
};

/// The order of tiles: in bands of `group` tiles across the raster axis, or else such that the tiles in
/// flight read about as many bytes of A as of B; and the bytes that come from memory.
struct Order {
  TileScheduler scheduler;
  double dram_bytes;  ///< of A and B, all batches
};
Order order_tiles(GemmArguments const& g, ClusterTile const& tile, int in_flight, Raster raster,
                  std::optional<int> group, GemmCostModel const& model) {
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
                        .batches = static_cast<int>(g.batch),
                        .raster = raster,
                        .group = group ? wanted : static_cast<int>(ceil_div(tiles_across, equal))};
  int const bands = static_cast<int>(ceil_div(tiles_across, s.group));

  // The operand across stays in L2 for its band; the one along comes again for each band, unless L2 holds it
  // beside what the band reads across and writes.
  double const a = static_cast<double>(g.m) * tile.a_row, b = static_cast<double>(g.n) * tile.b_row;
  double const d = static_cast<double>(g.m) * static_cast<double>(g.n) * bytes_of(*g.out);
  double const streamed = along_n ? b : a, kept = along_n ? a : b;
  double const times = streamed + (kept + d) / bands <= model.l2_mb * 1e6 ? 1 : bands;
  bool const streamed_shared = (along_n ? *g.b_batch_stride : *g.a_batch_stride) == 0;
  bool const kept_shared = (along_n ? *g.a_batch_stride : *g.b_batch_stride) == 0;
  auto const batches = [&](bool shared, double bytes) {
    return shared && bytes <= model.l2_mb * 1e6 ? 1.0 : static_cast<double>(g.batch);
  };
  return {s, times * streamed * batches(streamed_shared, streamed) + kept * batches(kept_shared, kept)};
}

}  // namespace

std::string to_string(GemmSm90Config const& c) {
  std::string s = fmt::format("gemm_sm90 {}", to_string(c.a));
  if (c.b != c.a) s += fmt::format("x{}", to_string(c.b));
  s += fmt::format("->{} A:{} B:{} {}x{}x{} {}", to_string(c.out), text(c.a_major), text(c.b_major),
                   c.block_m, c.block_n, block_k(c), text(c.schedule));
  if (cluster_size(c) > c.split_k) s += fmt::format(" cluster {}x{}", c.cluster_m, c.cluster_n);
  if (c.split_k > 1) s += fmt::format(" split-k {}", c.split_k);
  if (c.min_ctas_per_sm > 1) s += fmt::format(" {} CTAs/SM", c.min_ctas_per_sm);
  if (c.activation != Activation::none) s += fmt::format(" {}", to_string(c.activation));
  return s + fmt::format(" {} stages", stages(c));
}

std::string to_string(TilePartition const& tiling, TileWidths widths) {
  struct Rows {
    int rows = 0, tiles = 0;
  };
  std::map<int, Rows> kinds;  // rows of as many tiles each, by the first of them
  for (TileRegion const& region : tiling.regions) {
    if (region.first >= tiling.tiles) continue;
    kinds[region.m].rows = region.order.tiles_m;
    kinds[region.m].tiles += region.order.tiles_n;
  }
  auto const count = [](int n, char const* what) {
    return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
  };
  std::string s;
  for (auto const& [m, kind] : kinds)
    s += s.empty() ? fmt::format("{} of {}", count(kind.rows, "row"), count(kind.tiles, "tile"))
                   : fmt::format(" and {} of {}", count(kind.rows, "row"), kind.tiles);
  int const batches = tiling.order().batches;
  int const narrow = tiling.fitted() ? (tiling.tiles - tiling.first_narrow) / batches : 0;
  if (narrow == tiling.tiles / batches)
    s += fmt::format(", all {} columns wide", widths.narrow);
  else if (narrow > 0)
    s += fmt::format(", of which {} {} {} columns wide and the others {}", narrow, narrow == 1 ? "is" : "are",
                     widths.narrow, widths.wide);
  if (batches > 1) s += fmt::format(", in each of {} batches", batches);
  return s;
}

std::string to_string(GemmArguments const& arguments) {
  GemmArguments const g = with_defaults(arguments);
  std::string sum =
      fmt::format("{}{}{}A B", g.alpha == 1 ? "" : fmt::format("{} ", g.alpha),
                  g.scale_a == nullptr ? "" : "scale_a ", g.scale_b == nullptr ? "" : "scale_b ");
  if (g.beta != 0) sum += fmt::format(" + {} C", g.beta);
  if (g.bias != nullptr) sum += " + bias";
  if (g.activation != Activation::none) sum = fmt::format("{}({})", to_string(g.activation), sum);
  return fmt::format("D = {}: m {}, n {}, k {}{}, A {} {}-major, B {} {}-major, D {}", sum, g.m, g.n, g.k,
                     g.batch == 1 ? "" : fmt::format(", batch {}", g.batch), to_string(g.in), text(g.a_major),
                     to_string(*g.in_b), text(g.b_major), to_string(*g.out));
}

std::string tma_obstacle(GemmArguments const& arguments) {
  GemmArguments const g = with_defaults(arguments);
  int const in = bytes_of(g.in), in_b = bytes_of(*g.in_b), out = bytes_of(*g.out);
  TmaRules rules(g.batch);
  rules.operand("a", g.a, g.a_major == Major::k ? g.m : g.k, *g.lda, *g.a_batch_stride, in);
  rules.operand("b", g.b, g.b_major == Major::k ? g.n : g.k, *g.ldb, *g.b_batch_stride, in_b);
  rules.operand("d", g.d, g.m, *g.ldd, *g.d_batch_stride, out);
  if (g.beta != 0) rules.operand("c", g.c, g.m, *g.ldc, *g.c_batch_stride, out);
  rules.address("bias", g.bias, 2 * out);  // read in pairs
  return rules.obstacle();
}

GemmChoice predict(GemmArguments const& arguments, GemmSm90Config const& c, DeviceProperties const& device,
                   GemmConstraints const& wanted, GemmCostModel const& model) {
  GemmArguments const g = with_defaults(arguments);
  double const cycles_per_us = 1e3 * model.clock_ghz;
  int const k_steps = static_cast<int>(ceil_div(g.k, block_k(c)));
  ClusterTile const tile{c.block_m * c.cluster_m, c.block_n * c.cluster_n,
                         static_cast<double>(g.k) * bytes_of(g.in),
                         static_cast<double>(g.k) * bytes_of(*g.in_b)};
  int const resident = resident_clusters(cluster_size(c), device, model);

  GemmChoice choice{.kernel = GemmKernel::sm90};
  int const tiles = static_cast<int>(ceil_div(g.m, tile.m) * ceil_div(g.n, tile.n) * g.batch);
  // With split_k a cluster computes one tile: there are as many clusters as tiles.
  choice.clusters = c.split_k > 1 ? tiles : std::min(tiles, resident * c.min_ctas_per_sm);
  int waves = static_cast<int>(ceil_div(tiles, resident));

  // One tile on one SM. wgmma takes 32 bytes along K at a time, of 64 rows of A and block_n columns of B.
  double const instructions = 4.0 * ceil_div(k_steps, c.split_k) * (c.block_m / 64);
  double const instruction_cycles = std::max(64.0 * c.block_n * 16 / model.multiply_adds_per_cycle,
                                             32.0 * (64 + c.block_n) / model.operand_bytes_per_cycle);
  double const fetched =
      static_cast<double>(stage_bytes(c)) * static_cast<double>(ceil_div(k_steps, c.split_k));
  double const fetch = fetched / model.sm_bytes_per_cycle / cycles_per_us;
  // How far the loads run ahead: too little, and some come late.
  double const step_cycles =
      std::max(4.0 * (c.block_m / 64) * instruction_cycles, stage_bytes(c) / model.sm_bytes_per_cycle);
  double const ahead = (stages(c) - 1) * step_cycles / model.fetch_latency_cycles;
  double const late = model.late_loss * std::max(0.0, 1 - ahead) +
                      (c.schedule == Schedule::cooperative ? model.cooperative_loss : 0.0);
  double const main = instructions * instruction_cycles / cycles_per_us;

  // The part of a full epilogue that this one is: by accumulators of a thread.
  double const part = static_cast<double>(consumer_m(c)) * epilogue_n(c) / 128 / 128;
  double epilogue = std::max(model.least_epilogue_us, part * model.epilogue_us);
  if (g.beta != 0) epilogue += part * model.read_c_us;
  if (c.split_k > 1) epilogue += model.reduction_us;
  bool const pingpong = c.schedule == Schedule::pingpong;
  bool const hidden = pingpong || c.min_ctas_per_sm > 1;  // under another tile's main loop

  double const d_bytes = static_cast<double>(g.batch) * static_cast<double>(g.m) * static_cast<double>(g.n) *
                         bytes_of(*g.out) * (g.beta != 0 ? 2 : 1);
  // Square blocks of tiles are the fastest order (measured) until memory takes about as long as the tensor
  // cores: then the order that reads least. Clusters go to the GPCs in turn, so with the blocks about as many
  // tiles across as there are GPCs, those of a GPC share what is across, and L2 is read once for some of
  // them: the operand of which a tile has more.
  Raster const raster =
      tile.n * tile.b_row > tile.m * tile.a_row && g.m > static_cast<std::int64_t>(model.gpcs) * tile.m
          ? Raster::along_m
          : Raster::along_n;
  auto const order = [&](Raster raster, std::optional<int> group) {
    return order_tiles(g, tile, resident, wanted.raster.value_or(raster), wanted.group ? wanted.group : group,
                       model);
  };
  auto const dram = [&](Order const& o) { return (o.dram_bytes + d_bytes) / (model.dram_tb_per_s * 1e6); };
  Order best = order(raster, {});
  if (dram(best) > 0.65 * waves * main) {
    for (Order const& other :
         {order(Raster::along_n, static_cast<int>(ceil_div(g.m, tile.m))), order(Raster::along_m, {})}) {
      if (dram(other) < dram(best)) best = other;
    }
  }
  double const memory = dram(best);

  // Where the last wave is not full, tiles of two widths; they share fewer operands with their neighbours.
  TileWidths const widths = tile_widths(c);
  double const exposed = hidden ? 0 : epilogue;
  int const overhead = static_cast<int>(std::lround(widths.wide * exposed / main));  // in columns
  auto const share_of = [&](TilePartition const& tiling) {
    return static_cast<double>(longest_share(tiling, resident, widths, overhead)) / (widths.wide + overhead);
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
  double const operands = static_cast<double>(g.batch) *
                          (static_cast<double>(g.m) * tile.a_row + static_cast<double>(g.n) * tile.b_row);
  if (c.split_k == 1 && choice.tiling.tiles > choice.clusters && k_steps >= model.paced_steps &&
      operands > model.paced_mb * 1e6)
    choice.lockstep_steps = model.lockstep_steps;

  // What the CTAs of a cluster share leaves L2 once; and so, about, does what two neighbours share that are
  // launched together and walk in step (measured at two rows of tiles).
  bool const in_step = cluster_size(c) == 1 && best.scheduler.raster == Raster::along_n &&
                       best.scheduler.tiles_m == 2 && best.scheduler.group == 2;
  double const from_l2 =
      static_cast<double>(tiles) * k_steps * 128.0 * (tile.m + (in_step ? tile.n / 2 : tile.n));

  GemmCost& cost = choice.cost;
  cost.tiles = (c.split_k > 1 ? tiles : choice.tiling.tiles) * c.cluster_m * c.cluster_n;
  cost.waves = waves;
  cost.share = share;
  cost.launch = model.launch_us;
  cost.fill = model.fill_us * (c.split_k > 1 ? waves : 1) + share * main * late;
  cost.tensor = share * main;
  cost.l2 = std::max(from_l2 / (model.l2_tb_per_s * 1e6), share * fetch);
  cost.dram = memory;
  double const longest = std::max({cost.tensor, cost.l2, cost.dram});
  // Memory is kept less busy by those SMs that have a tile in the last of several waves.
  if (waves > 1 && cost.dram == longest)
    cost.fill += model.uneven_loss * longest * (1 - static_cast<double>(tiles) / (resident * waves));
  // Where tensor cores or L2 set the pace, SMs finish in step: the last tiles are stored by all at once, as
  // fast as L2 takes them.
  double const stored = static_cast<double>(choice.clusters) * cluster_size(c) * c.block_m * c.block_n *
                        bytes_of(*g.out) / (model.store_tb_per_s * 1e6);
  double const last = cost.dram == longest || c.split_k > 1 ? epilogue : std::max(epilogue, stored);
  // Hidden epilogues show where they take longer than the main loop that they lie under.
  cost.epilogue = last + (waves - 1) * (hidden ? model.overlap_loss * epilogue +
                                                     std::max(0.0, (epilogue - longest / waves) / 2)
                                               : epilogue);
  cost.total = cost.launch + cost.fill + longest + cost.epilogue +
               model.overlap_loss * (cost.tensor + cost.l2 + cost.dram - longest);
  return choice;
}

GemmChoice predict(GemmArguments const& arguments, GemmConfig const& c, DeviceProperties const& device,
                   GemmCostModel const& model) {
  GemmArguments const g = with_defaults(arguments);
  // A multiply-add is this many times cheaper than an element that must be copied to shared memory for it.
  constexpr double copy = 64;
  double const copies = copy * (c.block_m + c.block_n) * (16.0 / c.vector_bytes);
  double const cta = static_cast<double>(ceil_div(g.k, c.block_k) * c.block_k) *
                     (static_cast<double>(c.block_m) * c.block_n + copies);
  std::int64_t const tiles = ceil_div(g.m, c.block_m) * ceil_div(g.n, c.block_n) * g.batch;
  GemmChoice choice{.kernel = GemmKernel::sm80};
  choice.cost.tiles = static_cast<int>(tiles);
  choice.cost.waves = static_cast<int>(ceil_div(tiles, device.multiprocessors));
  choice.cost.launch = model.launch_us;
  choice.cost.tensor = choice.cost.waves * cta / (model.sm80_multiply_adds_per_cycle * 1e3 * model.clock_ghz);
  choice.cost.total = choice.cost.launch + choice.cost.tensor;
  return choice;
}

namespace {

/// Calls visit(kernel, index, refusal or null) for every entry of both tables; gemm_sm90's first.
template <class Visit>
void enumerate(GemmArguments const& g, DeviceProperties const& device, GemmConstraints const& wanted,
               char const* sm90_obstacle, Visit&& visit) {
  bool sm90 = false;
  auto const table = gemm_sm90_configurations();
  for (int i = 0; i < static_cast<int>(table.size()); ++i) {
    GemmSm90Config const& c = table[static_cast<std::size_t>(i)];
    char const* refusal = mismatch(g, c);
    if (refusal == nullptr) refusal = sm90_obstacle;
    if (refusal == nullptr) refusal = unwanted(wanted, c, i);
    sm90 = sm90 || refusal == nullptr;
    visit(GemmKernel::sm90, i, refusal);
  }
  auto const fallback = gemm_configurations();
  int const vector = vector_bytes(g);
  for (int i = 0; i < static_cast<int>(fallback.size()); ++i) {
    char const* refusal = mismatch(g, fallback[static_cast<std::size_t>(i)], device, vector);
    if (refusal == nullptr) refusal = unwanted(wanted, i);
    if (refusal == nullptr && sm90) refusal = "gemm_sm90 computes the problem";
    visit(GemmKernel::sm80, i, refusal);
  }
}

GemmChoice predict(GemmKernel kernel, int index, GemmArguments const& g, DeviceProperties const& device,
                   GemmConstraints const& wanted, GemmCostModel const& model) {
  auto const at = static_cast<std::size_t>(index);
  GemmChoice choice = kernel == GemmKernel::sm90
                          ? predict(g, gemm_sm90_configurations()[at], device, wanted, model)
                          : predict(g, gemm_configurations()[at], device, model);
  choice.configuration = index;
  return choice;
}

[[noreturn]] void refuse_all(GemmArguments const& g, std::string const& obstacle, std::size_t unwanted) {
  std::string const problem = to_string(g);
  if (unwanted > 0)
    throw argument_error(fmt::format(
        "gemm: none of the {} configurations that compute this problem is what was asked for ({}).", unwanted,
        problem));
  throw argument_error(
      fmt::format("gemm: no configuration of this build computes this problem ({}){}.{}", problem,
                  obstacle.empty() ? "" : fmt::format("; gemm_sm90 does not, for {}", obstacle),
                  missing_configurations_note()));
}

/// Whether the problem alone, whatever is asked for, admits an entry.
std::size_t admitted_without_constraints(GemmArguments const& g, DeviceProperties const& device,
                                         char const* obstacle) {
  std::size_t count = 0;
  enumerate(g, device, {}, obstacle,
            [&](GemmKernel, int, char const* refusal) { count += refusal == nullptr; });
  return count;
}

}  // namespace

GemmChoice choose_gemm(GemmArguments const& arguments, DeviceProperties const& device,
                       GemmConstraints const& wanted, GemmCostModel const& model) {
  GemmArguments const g = with_defaults(arguments);
  check(device);
  std::string const obstacle = sm90_obstacle(g, device);
  char const* const sm90 = obstacle.empty() ? nullptr : obstacle.c_str();
  std::optional<GemmChoice> best;
  enumerate(g, device, wanted, sm90, [&](GemmKernel kernel, int index, char const* refusal) {
    if (refusal != nullptr) return;
    GemmChoice const choice = predict(kernel, index, g, device, wanted, model);
    if (!best || choice.cost.total < best->cost.total) best = choice;
  });
  if (!best) refuse_all(g, obstacle, admitted_without_constraints(g, device, sm90));
  return *best;
}

std::vector<GemmChoice> tuning_candidates(GemmArguments const& g, DeviceProperties const& device, int most,
                                          GemmConstraints const& wanted, GemmCostModel const& model) {
  constexpr double worth_timing =
      1.1;  // of the best predicted time: about what the model has been seen to be off by
  if (most < 1)
    throw argument_error(fmt::format("tuning_candidates: most is {}; it must be at least 1.", most));
  GemmPlan const plan = plan_gemm(g, device, wanted, model);
  std::vector<GemmChoice> candidates = {plan.chosen()};
  auto const add = [&](GemmChoice const& choice) {
    bool const known = std::any_of(candidates.begin(), candidates.end(), [&](GemmChoice const& other) {
      return choice.kernel == other.kernel && choice.configuration == other.configuration &&
             choice.tiling == other.tiling;
    });
    if (!known && static_cast<int>(candidates.size()) < most) candidates.push_back(choice);
  };
  auto const worth = [&](GemmCandidate const& candidate) {
    return candidate.refused.empty() &&
           candidate.choice.cost.total <= worth_timing * plan.chosen().cost.total;
  };
  for (GemmCandidate const& candidate : plan.candidates)
    if (worth(candidate)) add(candidate.choice);
  for (GemmCandidate const& candidate : plan.candidates) {
    if (!worth(candidate) || candidate.choice.kernel == GemmKernel::sm80) continue;
    GemmConstraints cut = wanted;  // into tiles of two widths, or not
    if (!cut.fitted) cut.fitted = !candidate.choice.tiling.fitted();
    add(predict(candidate.choice.kernel, candidate.choice.configuration, g, device, cut, model));
    for (Raster const raster : {Raster::along_n, Raster::along_m}) {
      for (int const factor : {1, 2}) {
        GemmConstraints order = wanted;
        if (!order.raster) order.raster = raster;
        if (!order.group) order.group = factor * candidate.choice.tiling.order().group;
        add(predict(candidate.choice.kernel, candidate.choice.configuration, g, device, order, model));
      }
    }
  }
  return candidates;
}

GemmPlan plan_gemm(GemmArguments const& arguments, DeviceProperties const& device,
                   GemmConstraints const& wanted, GemmCostModel const& model) {
  GemmArguments const g = with_defaults(arguments);
  check(device);
  std::string const obstacle = sm90_obstacle(g, device);
  char const* const sm90 = obstacle.empty() ? nullptr : obstacle.c_str();
  GemmPlan plan{.problem = to_string(g)};
  enumerate(g, device, wanted, sm90, [&](GemmKernel kernel, int index, char const* refusal) {
    auto const at = static_cast<std::size_t>(index);
    GemmCandidate candidate{.name = kernel == GemmKernel::sm90 ? to_string(gemm_sm90_configurations()[at])
                                                               : to_string(gemm_configurations()[at])};
    if (refusal == nullptr) {
      candidate.choice = predict(kernel, index, g, device, wanted, model);
    } else {
      candidate.choice.kernel = kernel;
      candidate.choice.configuration = index;
      candidate.refused = refusal;
    }
    plan.candidates.push_back(std::move(candidate));
  });
  std::stable_sort(plan.candidates.begin(), plan.candidates.end(),
                   [](GemmCandidate const& x, GemmCandidate const& y) {
                     if (x.refused.empty() != y.refused.empty()) return x.refused.empty();
                     return x.refused.empty() && x.choice.cost.total < y.choice.cost.total;
                   });
  if (plan.candidates.empty() || !plan.candidates.front().refused.empty())
    refuse_all(g, obstacle, admitted_without_constraints(g, device, sm90));

  GemmCost const& cost = plan.chosen().cost;
  std::string const bound = cost.tensor >= std::max(cost.l2, cost.dram) ? "the tensor cores"
                            : cost.l2 >= cost.dram                      ? "L2"
                                                                        : "memory";
  plan.reason =
      fmt::format("{} is predicted to take the least time: {} tiles in {} wave{}, bound by {}",
                  plan.candidates.front().name, cost.tiles, cost.waves, cost.waves == 1 ? "" : "s", bound);
  if (plan.candidates.size() > 1 && plan.candidates[1].refused.empty())
    plan.reason += fmt::format("; the next would take {:.1f} % more",
                               100 * (plan.candidates[1].choice.cost.total / cost.total - 1));
  if (plan.chosen().tiling.fitted()) {
    TilePartition const& tiling = plan.chosen().tiling;
    int const clusters = plan.chosen().clusters;
    GemmSm90Config const& c =
        gemm_sm90_configurations()[static_cast<std::size_t>(plan.chosen().configuration)];
    TileWidths const widths = tile_widths(c);
    std::int64_t const equal = ceil_div(g.m, c.block_m * c.cluster_m) * ceil_div(g.n, widths.wide) * g.batch;
    plan.reason += fmt::format(
        "; for {} clusters D is cut into {}: the busiest cluster computes {:.2f} tiles' worth, not {}",
        clusters, to_string(tiling, widths),
        static_cast<double>(longest_share(tiling, clusters, widths)) / widths.wide,
        ceil_div(equal, clusters));
  }
  if (plan.chosen().kernel == GemmKernel::sm80 && !obstacle.empty())
    plan.reason += "; gemm_sm90 is ruled out: " + obstacle;
  plan.reason += ".";
  return plan;
}

std::string to_string(GemmPlan const& plan, bool all) {
  std::string s = plan.problem + "\n\n";
  s += fmt::format("{:>8} {:>6} {:>6} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7}  {}\n", "total us", "tiles",
                   "waves", "launch", "fill", "tensor", "L2", "DRAM", "epilog.", "configuration");
  std::map<std::string, int> refused;
  for (GemmCandidate const& candidate : plan.candidates) {
    if (!candidate.refused.empty()) {
      ++refused[candidate.refused];
      continue;
    }
    GemmCost const& c = candidate.choice.cost;
    s += fmt::format("{:>8.2f} {:>6} {:>6} {:>7.2f} {:>7.2f} {:>7.2f} {:>7.2f} {:>7.2f} {:>7.2f}  {}: {}",
                     c.total, c.tiles, c.waves, c.launch, c.fill, c.tensor, c.l2, c.dram, c.epilogue,
                     candidate.choice.configuration, candidate.name);
    TileScheduler const& t = candidate.choice.tiling.order();
    if (candidate.choice.kernel == GemmKernel::sm90)
      s += fmt::format(", raster along {} in groups of {}, {} clusters{}{}", to_string(t.raster), t.group,
                       candidate.choice.clusters, candidate.choice.tiling.fitted() ? ", two widths" : "",
                       candidate.choice.lockstep_steps > 0 ? ", in step" : "");
    s += "\n";
  }
  s += "\n";
  if (all) {
    for (GemmCandidate const& candidate : plan.candidates)
      if (!candidate.refused.empty())
        s += fmt::format("not {}: {}: {}\n", candidate.choice.configuration, candidate.name,
                         candidate.refused);
  } else {
    for (auto const& [why, count] : refused) s += fmt::format("{:>4} refused: {}\n", count, why);
  }
  return s + fmt::format("\n{}\n", plan.reason);
}

}  // namespace tegula
