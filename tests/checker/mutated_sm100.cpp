// gemm_sm100, plain, with block scales and of groups, among the kernels that are mutated, in small
// configurations.

#include "mutated_groups.hpp"
#include "tegula/kernel/grouped_gemm_sm100.hpp"
#include "tegula/kernel/grouped_gemm_sm100_table.hpp"
#include "tegula/kernel/scaled_gemm_sm100.hpp"
#include "tegula/kernel/scaled_gemm_sm100_table.hpp"

namespace tegula::mutants {
namespace {

using Sm100Case = GroupsCase<GemmSm100Config>;

constexpr Sm100Case by_the_letter(Sm100Case c, char const* name) {
  c.name = name, c.strict_scopes = true;
  return c;
}

constexpr DType e4m3 = DType::e4m3, e2m1 = DType::e2m1, f32 = DType::f32;

constexpr Sm100Case kPairByK = {.name = "grouped_gemm_sm100_pair_by_k",
                                .config = {.out = f32, .block_n = 64, .ctas = 2},
                                .grouping = Grouping::k,
                                .m = 150,
                                .n = 70,
                                .k = 900,
                                .ends = {72, 72, 850}};

constexpr Sm100Case kSm100Cases[] = {
    {.name = "grouped_gemm_sm100",
     .config = {.block_n = 64},
     .grouping = Grouping::contiguous,
     .m = 170,
     .n = 152,
     .k = 200,
     .ends = {130, 130, 165},
     .in_place = true},
    {.name = "grouped_gemm_sm100_masked",
     .config = {.block_n = 64},
     .grouping = Grouping::masked,
     .m = 70,
     .n = 50,
     .k = 344,
     .ends = {66, 0, 70},
     .adds = true},
    {.name = "grouped_gemm_sm100_by_k",
     .config = {.out = f32, .block_n = 64},
     .grouping = Grouping::k,
     .m = 130,
     .n = 61,
     .k = 800,
     .ends = {72, 72, 750}},
    {.name = "grouped_gemm_sm100_pair",
     .config = {.block_n = 64, .ctas = 2},
     .grouping = Grouping::contiguous,
     .m = 300,
     .n = 77,
     .k = 200,
     .ends = {130, 130, 300},
     .adds = true},
    kPairByK,
    by_the_letter(kPairByK, "grouped_gemm_sm100_pair_by_k_strict"),
    {.name = "grouped_gemm_sm100_mxf8",
     .config = {.a = e4m3, .b = e4m3, .block_n = 128, .scale = kMxScale},
     .grouping = Grouping::contiguous,
     .m = 280,
     .n = 140,
     .k = 400,
     .ends = {128, 128, 270}},
    {.name = "grouped_gemm_sm100_nvf4_by_k",
     .config = {.a = e2m1, .b = e2m1, .out = f32, .block_n = 128, .scale = kNvScale},
     .grouping = Grouping::k,
     .m = 100,
     .n = 40,
     .k = 2400,
     .ends = {64, 64, 2200}},
    {.name = "grouped_gemm_sm100_pair_mxf8_by_k",
     .config = {.a = e4m3, .b = e4m3, .out = f32, .block_n = 128, .ctas = 2, .scale = kMxScale},
     .grouping = Grouping::k,
     .m = 140,
     .n = 40,
     .k = 1000,
     .ends = {128, 128, 900}},
    {.name = "grouped_gemm_sm100_one", .config = {.block_n = 64}, .m = 70, .n = 58, .k = 80},
};

constexpr GroupedGemmSm100Config grouped(GemmSm100Config c) {
  c.grouped = true;
  return {c};
}
template <int I> struct Sm100KernelOf : GroupedGemmSm100<grouped(kSm100Cases[I].config)> {};

/// An operand's elements, in pairs where they are of 4 bits: (k, mn, matrices) of a tensor map.
TensorMap operand(Bench& bench, char const* name, DType type, std::int64_t mn, std::int64_t k,
                  std::int64_t matrices, TmaBoxes const& boxes) {
  bool const pairs = bits(type) < 8;
  std::int64_t const columns = pairs ? k / 2 : k;
  DType const stored = pairs ? DType::u8 : type;
  std::int64_t const ld = whole_lines(columns, stored, 16);
  void const* const memory = pairs ? bench.bytes(name, ld * mn * matrices, 0, 256)
                                   : bench.input(name, type, k, mn * matrices, ld);
  return sim::encode(
      describe(TmaMatrices{stored, memory, mn, columns, matrices, ld, ld * mn}, boxes));
}

/// Scales about one, (rows, k, matrices).
TensorMap scales(Bench& bench, char const* name, GemmSm100Config const& c, std::int64_t rows,
                 std::int64_t k, std::int64_t matrices, int times_128_rows) {
  std::int64_t const pieces_k = scale_pieces_k(static_cast<int>(k), c.scale.block),
                     pieces_m = scale_pieces_rows(static_cast<int>(rows)),
                     of_rows = kScalePieceBytes * pieces_k;
  int const one = c.scale.type == DType::ue8m0 ? 127 : 0x38;
  return sim::encode({.dtype = DType::u8,
                      .rank = 4,
                      .address = bench.bytes(name, of_rows * pieces_m * matrices, one - 4, 9),
                      .extents = {kScaleBoxBytes, 2 * pieces_k, pieces_m, matrices},
                      .strides = {kScaleBoxBytes, of_rows, of_rows * pieces_m},
                      .box = {kScaleBoxBytes, 2 * scale_pieces(c), times_128_rows, 1}});
}

GroupedGemmSm100Params sm100_params(Bench& bench, Sm100Case const& c) {
  GemmSm100Config const& config = c.config;
  GroupedGemmSm100Params p{
      .problem = {.a = operand(bench, "A", config.a, c.m, c.k, c.of_a(), a_fetch(config)),
                  .b = operand(bench, "B", config.b, c.n, c.k, c.of_b(), b_fetch(config)),
                  .m = c.m,
                  .n = c.n,
                  .k = c.k,
                  .a_batched = c.of_a() > 1,
                  .b_batched = c.of_b() > 1},
      .schedule = {.tiles = tiles_of(bench, c, config.block_n)}};
  p.scale_a = p.scale_b = p.problem.a;
  if (config.scale.block != 0) {
    p.scale_a = scales(bench, "scales of A", config, c.m, c.k, c.of_a(), 1);
    p.scale_b = scales(bench, "scales of B", config, c.n, c.k, c.of_b(), scale_rows_b(config));
  }
  p.epilogue = output_of(bench, c);
  return p;
}

/// Without groups: D = A B^T, or with `adds` 0.5 C and a bias beside it.
struct DenseSm100Case {
  char const* name;
  GemmSm100Config config;
  int m, n, k, batch = 1;
  bool adds = false;
  int clusters = 1;  ///< of the grid, where tiles are dealt beforehand
  sim::Strict strict = {};
};

/// By default an order is enough of what launch control's answers need a fence, or a scope, for.
constexpr sim::Strict kByTheLetter = {.proxies = true, .scopes = true};

constexpr DenseSm100Case kDenseSm100Cases[] = {
    {.name = "gemm_sm100", .config = {.block_n = 64}, .m = 130, .n = 136, .k = 648},
    {.name = "gemm_sm100_adds",  // rows that TMA cannot store whole
     .config = {.out = f32, .block_n = 64},
     .m = 70,
     .n = 131,
     .k = 72,
     .batch = 2,
     .adds = true},
    {.name = "gemm_sm100_pair",
     .config = {.block_n = 128, .ctas = 2},
     .m = 300,
     .n = 136,
     .k = 200,
     .adds = true},
    {.name = "gemm_sm100_launched",
     .config = {.block_n = 64, .launched = true},
     .m = 130,
     .n = 200,
     .k = 72,
     .strict = kByTheLetter},
    {.name = "gemm_sm100_pair_launched",
     .config = {.block_n = 64, .ctas = 2, .launched = true},
     .m = 520,
     .n = 136,
     .k = 72,
     .strict = kByTheLetter},
    {.name = "gemm_sm100_cluster",  // both operands shared
     .config = {.block_n = 64, .cluster_tiles_m = 2, .cluster_tiles_n = 2},
     .m = 300,
     .n = 150,
     .k = 200,
     .adds = true},
    {.name = "gemm_sm100_pairs",
     .config = {.block_n = 64, .ctas = 2, .cluster_tiles_m = 2, .cluster_tiles_n = 2},
     .m = 530,
     .n = 136,
     .k = 200},
    {.name = "gemm_sm100_pairs_launched",
     .config = {.block_n = 64, .ctas = 2, .cluster_tiles_m = 2, .launched = true},
     .m = 530,
     .n = 136,
     .k = 72,
     .strict = kByTheLetter},
    {.name = "scaled_gemm_sm100_mxf8",
     .config = {.a = e4m3, .b = e4m3, .block_n = 128, .scale = kMxScale},
     .m = 140,
     .n = 136,
     .k = 900},
    {.name = "scaled_gemm_sm100_wide",  // one tile's accumulators, by a pair
     .config = {.a = e2m1, .b = e2m1, .block_n = 256, .ctas = 2, .scale = kNvScale},
     .m = 300,
     .n = 264,
     .k = 600,
     .adds = true},
};

constexpr bool is_scaled(DenseSm100Case const& c) { return c.config.scale.block != 0; }
template <int I> constexpr auto dense_config() {
  if constexpr (is_scaled(kDenseSm100Cases[I])) {
    return ScaledGemmSm100Config{kDenseSm100Cases[I].config};
  } else {
    return kDenseSm100Cases[I].config;
  }
}
template <auto C> struct DenseKernel;
template <GemmSm100Config C> struct DenseKernel<C> : GemmSm100<C> {};
template <ScaledGemmSm100Config C> struct DenseKernel<C> : ScaledGemmSm100<C> {};
template <int I> struct DenseSm100KernelOf : DenseKernel<dense_config<I>()> {};

GemmSm90Params dense_params(Bench& bench, DenseSm100Case const& c) {
  GemmSm100Config const& config = c.config;
  std::int64_t const ldd = whole_lines(c.n, config.out, 16), rows = std::int64_t{c.m} * c.batch;
  PerPiece<TmaBoxes> const pieces = store_boxes(epilogue(config));
  int const by_tma = columns_by_tma(c.n, store_unit(config.out));
  auto const maps = [&](void const* memory, int columns) {
    TmaMatrices const x = {config.out, memory, c.m, columns, c.batch, ldd, ldd * c.m};
    return PerPiece<TensorMap>{sim::encode(describe(x, pieces.whole)),
                               sim::encode(describe(x, pieces.last)),
                               sim::encode(describe(x, pieces.last_narrow))};
  };
  TensorMap const a = operand(bench, "A", config.a, c.m, c.k, c.batch, a_fetch(config)),
                  b = operand(bench, "B", config.b, c.n, c.k, c.batch, b_fetch(config));
  void* const d = bench.output("D", config.out, c.n, rows, ldd);
  TileScheduler const tiling = {.tiles_m = ceil_div(c.m, config.block_m * cluster_of(config).m),
                                .tiles_n = ceil_div(c.n, config.block_n * cluster_of(config).n),
                                .batches = c.batch,
                                .raster = Raster::along_n,
                                .group = 1};
  GemmSm90Params p = {
      .problem = {.a = a,
                  .b = b,
                  .m = c.m,
                  .n = c.n,
                  .k = c.k,
                  .a_batched = c.batch > 1,
                  .b_batched = c.batch > 1,
                  .a_last = a,
                  .b_last = b},
      .schedule = {.clusters = config.launched ? tiling.tiles_m * tiling.tiles_n * tiling.batches
                                               : c.clusters,
                   .tiling = tiling},
      .epilogue = {.d = maps(d, by_tma > 0 ? by_tma : c.n),
                   .d_address = d,
                   .ldd = ldd,
                   .d_batch_stride = ldd * c.m,
                   .alpha = 1,
                   .beta = c.adds ? 0.5f : 0.0f,
                   .c_batched = c.batch > 1}};
  // A mutant may load C where there is none; it then loads D.
  p.epilogue.c = p.epilogue.d;
  if (c.adds) {
    p.epilogue.c = maps(bench.input("C", config.out, c.n, rows, ldd), c.n);
    p.epilogue.bias = bench.input("bias", config.out, c.n, 1, c.n);
  }
  return p;
}
ScaledGemmSm100Params scaled_params(Bench& bench, DenseSm100Case const& c) {
  return {dense_params(bench, c), scales(bench, "scales of A", c.config, c.m, c.k, c.batch, 1),
          scales(bench, "scales of B", c.config, c.n, c.k, c.batch, scale_rows_b(c.config))};
}

}  // namespace

std::vector<MutatedKernel> mutated_sm100() {
  std::vector<MutatedKernel> dense = mutated_cases<kDenseSm100Cases>([]<int I> {
    static constexpr DenseSm100Case const& c = kDenseSm100Cases[I];
    return mutated_case<DenseSm100KernelOf<I>>(
        c.name, is_scaled(c) ? "scaled_gemm_sm100" : "gemm_sm100", dense_config<I>(),
        [](sim::Options& options) {
          on_sm100(options);
          options.strict = c.strict;
        },
        [](Bench& bench) {
          if constexpr (is_scaled(c)) {
            return scaled_params(bench, c);
          } else {
            return dense_params(bench, c);
          }
        });
  });
  std::vector<MutatedKernel> all = mutated_cases<kSm100Cases>([]<int I> {
    static constexpr Sm100Case const& c = kSm100Cases[I];
    return mutated_case<Sm100KernelOf<I>>(
        c.name, "grouped_gemm_sm100", grouped(c.config),
        [](sim::Options& options) {
          on_sm100(options);
          options.strict.scopes = c.strict_scopes;
        },
        [](Bench& bench) { return sm100_params(bench, c); });
  });
  all.insert(all.end(), dense.begin(), dense.end());
  return all;
}

}  // namespace tegula::mutants
