#include "gemm_sm90_forms.hpp"

#include <array>

#include "gemm_params.hpp"
#include "tegula/device/global_tensors.hpp"
#include "tegula/sim/launch.hpp"
#include "tegula/sim/tensor_map.hpp"

namespace tegula {
namespace {

struct Operands {
  DType a, b, out;
  Major a_major = Major::k, b_major = Major::k;
};

constexpr Operands kOperands[] = {
    {DType::bf16, DType::bf16, DType::bf16},
    {DType::bf16, DType::bf16, DType::f32, Major::k, Major::mn},
    {DType::bf16, DType::bf16, DType::bf16, Major::mn, Major::k},
    {DType::f16, DType::f16, DType::f16, Major::mn, Major::mn},
    {DType::f16, DType::f16, DType::bf16},
    {DType::tf32, DType::tf32, DType::f32},
    {DType::e4m3, DType::e4m3, DType::bf16},
    {DType::e4m3, DType::e5m2, DType::f16},
    {DType::e5m2, DType::e4m3, DType::f32},
    {DType::e5m2, DType::e5m2, DType::bf16},
};

/// Tiles whose n is unlike: 64 (MN-major boxes of 64), 96 (stored 32 wide), 128.
constexpr GemmSm90Config kForms[] = {
    {.block_m = 64, .block_n = 64, .schedule = Schedule::basic},
    {.block_m = 64, .block_n = 128, .schedule = Schedule::basic, .cluster_m = 2},
    {.block_m = 128, .block_n = 64, .schedule = Schedule::basic, .cluster_n = 2},
    {.block_m = 64, .block_n = 64, .schedule = Schedule::basic, .split_k = 2},
    {.block_m = 64, .block_n = 128, .schedule = Schedule::basic, .min_ctas_per_sm = 2},
    {.block_m = 128, .block_n = 64, .schedule = Schedule::cooperative},
    {.block_m = 128, .block_n = 128, .schedule = Schedule::cooperative, .cluster_m = 2},
    {.block_m = 256, .block_n = 64, .schedule = Schedule::cooperative, .cluster_n = 2},
    {.block_m = 128, .block_n = 128, .schedule = Schedule::cooperative, .split_k = 4},
    {.block_m = 64, .block_n = 64, .schedule = Schedule::pingpong},
    {.block_m = 64, .block_n = 128, .schedule = Schedule::pingpong, .cluster_m = 2},
    {.block_m = 128, .block_n = 64, .schedule = Schedule::pingpong, .cluster_n = 2},
};

constexpr int kPairs = static_cast<int>(std::size(kForms));

/// Tiles of two widths: every schedule with every cluster shape, all types of D, and B of either
/// major. narrow_n is 8, 16 or 24 less, so that a row of the narrower tile ends with part of a
/// piece of D, or a piece of fewer bytes than any other.
constexpr GemmSm90Config kFittedForms[] = {
    {.block_m = 64, .block_n = 64, .schedule = Schedule::basic, .narrow_n = 48},
    {.out = DType::f32,
     .b_major = Major::mn,
     .block_m = 64,
     .block_n = 128,
     .schedule = Schedule::basic,
     .cluster_m = 2,
     .narrow_n = 112},
    {.out = DType::f16,
     .block_m = 128,
     .block_n = 64,
     .schedule = Schedule::basic,
     .cluster_n = 2,
     .narrow_n = 48},
    {.a = DType::f16,
     .b = DType::f16,
     .out = DType::f16,
     .a_major = Major::mn,
     .block_m = 128,
     .block_n = 96,
     .schedule = Schedule::cooperative,
     .narrow_n = 80},
    {.a = DType::tf32,
     .b = DType::tf32,
     .out = DType::f32,
     .block_m = 128,
     .block_n = 128,
     .schedule = Schedule::cooperative,
     .cluster_m = 2,
     .narrow_n = 112},
    {.a = DType::e4m3,
     .b = DType::e4m3,
     .block_m = 256,
     .block_n = 64,
     .schedule = Schedule::cooperative,
     .cluster_n = 2,
     .narrow_n = 40},
    {.block_m = 64, .block_n = 64, .schedule = Schedule::pingpong, .narrow_n = 48},
    {.a_major = Major::mn,
     .b_major = Major::mn,
     .block_m = 64,
     .block_n = 128,
     .schedule = Schedule::pingpong,
     .cluster_m = 2,
     .narrow_n = 112},
    {.a = DType::e5m2,
     .b = DType::e4m3,
     .out = DType::f32,
     .block_m = 128,
     .block_n = 64,
     .schedule = Schedule::pingpong,
     .cluster_n = 2,
     .narrow_n = 56},
};

/// K in parts, kParts of them: with one consumer and with two, with a multicast of either operand,
/// and types of D that are not those of A and B.
constexpr GemmSm90Config kFormsInParts[] = {
    {.block_m = 64, .block_n = 64, .schedule = Schedule::basic, .in_parts = true},
    {.out = DType::f32,
     .b_major = Major::mn,
     .block_m = 64,
     .block_n = 128,
     .schedule = Schedule::basic,
     .cluster_n = 2,
     .in_parts = true},
    {.a = DType::e4m3,
     .b = DType::e4m3,
     .out = DType::f16,
     .block_m = 128,
     .block_n = 64,
     .schedule = Schedule::cooperative,
     .cluster_m = 2,
     .in_parts = true},
};
constexpr int kParts = 2;

/// D transposed: by TMA in pieces of 64 columns and a rest, with one buffer and with two; from
/// registers; and tiles of two widths of both.
constexpr GemmSm90Config kTransposedForms[] = {
    {.block_m = 64, .block_n = 136, .schedule = Schedule::basic, .transposed = true},
    {.block_m = 128,
     .block_n = 72,
     .schedule = Schedule::cooperative,
     .cluster_m = 2,
     .store_buffers = 1,
     .transposed = true},
    {.block_m = 64,
     .block_n = 24,
     .schedule = Schedule::basic,
     .store_buffers = 0,
     .transposed = true},
    {.block_m = 128,
     .block_n = 128,
     .schedule = Schedule::pingpong,
     .cluster_n = 2,
     .narrow_n = 112,
     .transposed = true},
    {.block_m = 64,
     .block_n = 64,
     .schedule = Schedule::basic,
     .narrow_n = 48,
     .store_buffers = 0,
     .transposed = true},
};

/// D that leaves through the stage read last, of one, two and three consumers: by the row and
/// transposed; with elements of both sizes, C, a bias and activations; of two widths; and with 128
/// rows a consumer, which have two buffers.
constexpr GemmSm90Config kLendingForms[] = {
    {.block_m = 64,
     .block_n = 80,
     .schedule = Schedule::basic,
     .cluster_m = 2,
     .store_buffers = kLastStage},
    {.a = DType::tf32,
     .b = DType::tf32,
     .out = DType::f32,
     .block_m = 128,
     .block_n = 96,
     .schedule = Schedule::cooperative,
     .cluster_n = 2,
     .store_buffers = kLastStage,
     .activates = true},
    {.b_major = Major::mn,
     .block_m = 256,
     .block_n = 64,
     .schedule = Schedule::cooperative,
     .narrow_n = 48,
     .store_buffers = kLastStage},
    {.a = DType::e4m3,
     .b = DType::e4m3,
     .block_m = 192,
     .block_n = 80,
     .schedule = Schedule::cooperative,
     .cluster_m = 2,
     .store_buffers = kLastStage,
     .transposed = true},
    {.block_m = 128,
     .block_n = 128,
     .schedule = Schedule::cooperative,
     .narrow_n = 112,
     .store_buffers = kLastStage,
     .transposed = true},
};

/// Rows of a tile of D whose last piece is an odd multiple of 8 columns: 8 of 72, and, with C and a
/// bias, of 40 f32; of tiles of two widths; of the pieces that parts of K share; and through the
/// stage read last, of three consumers. Peers along m each fetch 36 rows of B.
constexpr GemmSm90Config kOddForms[] = {
    {.block_m = 64, .block_n = 72, .schedule = Schedule::basic, .cluster_m = 2},
    {.out = DType::f32, .block_m = 128, .block_n = 40, .schedule = Schedule::cooperative},
    {.block_m = 64, .block_n = 88, .schedule = Schedule::pingpong, .narrow_n = 72},
    {.block_m = 128, .block_n = 56, .schedule = Schedule::cooperative, .in_parts = true},
    {.a = DType::e4m3,
     .b = DType::e4m3,
     .block_m = 192,
     .block_n = 104,
     .schedule = Schedule::cooperative,
     .cluster_n = 2,
     .store_buffers = kLastStage},
};

constexpr Schedule kSchedules[] = {Schedule::basic, Schedule::cooperative, Schedule::pingpong};

/// Every form with bf16 K-major operands; then all operands with every schedule, its forms taking
/// turns (in a build of representative configurations with one schedule each, in turn); tiles of a
/// width that is no power of two; those of two widths; those in parts; D transposed; D through the
/// stage read last; and widths that are odd multiples of 8.
constexpr auto kConfigurations = [] {
  constexpr std::size_t others = std::size(kOperands) - 1;
  constexpr std::size_t with_others = TEGULA_ALL_FORMS ? std::size(kSchedules) * others : others;
  std::array<GemmSm90Config, kPairs + with_others + 2 + std::size(kFittedForms) +
                                 std::size(kFormsInParts) + std::size(kTransposedForms) +
                                 std::size(kLendingForms) + std::size(kOddForms)>
      configurations{};
  std::size_t count = 0;
  for (GemmSm90Config const& form : kForms) configurations[count++] = form;
  for (std::size_t s = 0; s < std::size(kSchedules); ++s) {
    Schedule const schedule = kSchedules[s];
    int form = 0;
    for (std::size_t i = 1; i < std::size(kOperands); ++i) {
      if (!TEGULA_ALL_FORMS && i % std::size(kSchedules) != s) continue;
      do {
        form = (form + 1) % kPairs;
      } while (kForms[form].schedule != schedule);
      GemmSm90Config c = kForms[form];
      c.a = kOperands[i].a, c.b = kOperands[i].b, c.out = kOperands[i].out;
      c.a_major = kOperands[i].a_major, c.b_major = kOperands[i].b_major;
      configurations[count++] = c;
    }
  }
  configurations[count++] = {.block_m = 64, .block_n = 96, .schedule = Schedule::pingpong};
  configurations[count++] = {.block_m = 128, .block_n = 160, .schedule = Schedule::cooperative};
  for (GemmSm90Config const& form : kFittedForms) configurations[count++] = form;
  for (GemmSm90Config const& form : kFormsInParts) configurations[count++] = form;
  for (GemmSm90Config const& form : kTransposedForms) configurations[count++] = form;
  for (GemmSm90Config const& form : kLendingForms) configurations[count++] = form;
  for (GemmSm90Config const& form : kOddForms) configurations[count++] = form;
  return configurations;
}();

GemmSm90Params params_of(sim::Machine& machine, GemmSm90Config const& c, GemmArguments const& g,
                         int clusters, Raster raster) {
  GemmSm90Parts parts = {.tile = TileParts(c.in_parts ? kParts : 1)};
  TileScheduler const order = equal_tiles(c, g, raster, /*group=*/2, parts.tile.count);
  TilePartition tiling = order;
  if (c.narrow_n > 0)
    tiling =
        fit_tiles(order, static_cast<int>(g.n), tile_widths(c), std::min(clusters, tiling.tiles));
  GemmSm90Schedule schedule = {.clusters = clusters_of(c, tiling, clusters), .tiling = tiling};
  if (c.in_parts)
    parts.partial = partial_sums(c, tiling, [&](std::int64_t bytes) {
      void* const memory = machine.allocate(static_cast<std::size_t>(bytes), "workspace");
      machine.fill(memory, 0, static_cast<std::size_t>(bytes));
      return memory;
    });
  // Along one axis looked up, along the other computed by the kernel.
  if (raster == Raster::along_m)
    schedule.initial_tiles =
        initial_tiles(tiling, tile_widths(c), schedule.clusters, cluster_size(c), 0);
  return independent_params(c, g, schedule, sim::encode, parts);
}

template <int I> struct Form : GemmSm90<kConfigurations[I]> {};

/// What a launch reports, and how it cut D.
struct Launched {
  sim::Report report;
  TilePartition tiling;
};

template <int I>
Launched launch(sim::Machine& machine, GemmArguments const& g, int clusters, Raster raster) {
  GemmSm90Params const params = params_of(machine, kConfigurations[I], g, clusters, raster);
  return {sim::launch<Form<I>>(machine, Form<I>::grid(params), params,
                               global_tensors(Form<I>::config, params)),
          params.schedule.tiling};
}

using Launch = Launched (*)(sim::Machine&, GemmArguments const&, int, Raster);
constexpr auto kLaunches = []<std::size_t... I>(std::index_sequence<I...>) {
  return std::array<Launch, sizeof...(I)>{&launch<static_cast<int>(I)>...};
}
(std::make_index_sequence<kConfigurations.size()>());

GemmSm90Config const& config_of(int form) {
  return kConfigurations[static_cast<std::size_t>(form)];
}

}  // namespace

std::span<GemmSm90Config const> gemm_sm90_forms() { return kConfigurations; }

std::string gemm_sm90_form_name(int form) {
  constexpr char const* schedules[] = {"basic", "cooperative", "pingpong"};
  GemmSm90Config const& c = config_of(form);
  return fmt::format("{}_{}_{}x{}{}{}_cluster_{}x{}_split_{}{}_{}_{}_{}_{}{}", form,
                     schedules[static_cast<int>(c.schedule)], c.block_m, c.block_n,
                     c.narrow_n > 0 ? fmt::format("_or_{}", c.narrow_n) : "",
                     c.transposed ? "_transposed" : "", c.cluster_m, c.cluster_n, c.split_k,
                     c.in_parts ? "_in_parts" : "", to_string(c.a), to_string(c.b),
                     to_string(c.out), c.a_major == Major::k ? "k" : "m",
                     c.b_major == Major::k ? "k" : "n");
}

GemmProblem problem_of_form(int form) {
  GemmSm90Config const& c = config_of(form);
  return {.in = c.a,
          .in_b = c.b,
          .out = c.out,
          .a_major = c.a_major,
          .b_major = c.b_major,
          .aligned = true};
}

GemmProblem callers_problem(int form, GemmProblem p) {
  if (!config_of(form).transposed) return p;
  std::swap(p.m, p.n), std::swap(p.one_a, p.one_b), std::swap(p.scale_a, p.scale_b);
  int const unit = store_unit(p.out);
  p.n = (p.n + unit - 1) / unit * unit;
  p.beta = 0, p.bias = false;
  return p;
}

FormResult run_form(Machine const& machine, int form, GemmProblem const& p, int clusters,
                    Raster raster) {
  FormResult result;
  static_cast<GemmResult&>(result) = run_by(machine, p, [&](GemmArguments const& caller) {
    GemmArguments const g = config_of(form).transposed ? exchanged(caller) : caller;
    Launched launched =
        kLaunches[static_cast<std::size_t>(form)](*machine.simulation(), g, clusters, raster);
    result.report = std::move(launched.report);
    result.tiling = launched.tiling;
  });
  return result;
}

}  // namespace tegula
