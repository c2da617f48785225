// grouped_gemm_sm90 in its forms among the kernels that are mutated: small configurations, each
// with groups that go round the ring, an empty one, one that ends within a tile.

#include "mutated_kernel.hpp"
#include "tegula/kernel/grouped_gemm_sm90.hpp"

namespace tegula::mutants {
namespace {

struct GroupedCase {
  char const* name;
  GroupedGemmSm90Config config;
  Grouping grouping = Grouping::none;
  int m = 1, n = 1, k = 1;       ///< of A: all rows, or those of each group where masked
  std::array<int, 3> ends = {};  ///< of the groups, where there are any
  bool adds = false;             ///< with a C
  bool in_place = false;         ///< which is D
};

constexpr GroupedCase kGroupedCases[] = {
    // Two waves of rows; the columns are of two blocks of B's scales.
    {.name = "grouped_gemm_sm90",
     .config = {.block_m = 256, .block_n = 160},
     .grouping = Grouping::contiguous,
     .m = 170,
     .n = 152,
     .k = 500,
     .ends = {130, 130, 165},
     .in_place = true},
    {.name = "grouped_gemm_sm90_cluster",
     .config = {.block_m = 64, .block_n = 32, .cluster_n = 2},
     .grouping = Grouping::masked,
     .m = 70,
     .n = 50,
     .k = 1168,
     .ends = {66, 0, 70},
     .adds = true},
    {.name = "grouped_gemm_sm90_by_k",
     .config = {.out = DType::f32, .scales = Scales::rows_by_rows, .block_m = 128, .block_n = 96},
     .grouping = Grouping::k,
     .m = 100,
     .n = 76,
     .k = 1408,
     .ends = {16, 16, 1300},
     .in_place = true},
    {.name = "grouped_gemm_sm90_bf16",
     .config =
         {.a = DType::bf16, .b = DType::bf16, .scales = Scales::none, .block_m = 64, .block_n = 64},
     .grouping = Grouping::contiguous,
     .m = 150,
     .n = 77,
     .k = 600,
     .ends = {66, 66, 150},
     .adds = true},
    {.name = "grouped_gemm_sm90_bf16_by_k",
     .config = {.a = DType::bf16,
                .b = DType::bf16,
                .scales = Scales::none,
                .block_m = 128,
                .block_n = 64},
     .grouping = Grouping::k,
     .m = 130,
     .n = 56,
     .k = 400,
     .ends = {72, 72, 350}},
    {.name = "grouped_gemm_sm90_one",
     .config =
         {.a = DType::bf16, .b = DType::bf16, .scales = Scales::none, .block_m = 64, .block_n = 64},
     .m = 70,
     .n = 58,
     .k = 80},
};

template <int I> struct GroupedKernelOf : GroupedGemmSm90<kGroupedCases[I].config> {};

constexpr int groups_of(GroupedCase const& c) { return c.grouping == Grouping::none ? 1 : 3; }

/// Scales of (rows, blocks of K, groups), as TMA loads them.
TensorMap scales(Bench& bench, char const* name, std::int64_t rows, std::int64_t blocks,
                 std::int64_t groups, int box) {
  std::int64_t const stride = whole_lines(rows, DType::f32, 16);
  return sim::encode({.dtype = DType::f32,
                      .rank = 3,
                      .address = bench.input(name, DType::f32, rows, blocks * groups, stride),
                      .extents = {rows, blocks, groups},
                      .strides = {stride * 4, stride * blocks * 4},
                      .box = {box, 1, 1}});
}

GroupedGemmSm90Params grouped_params(Bench& bench, GroupedCase const& c) {
  GroupedGemmSm90Config const& config = c.config;
  bool const by_k = c.grouping == Grouping::k, masked = c.grouping == Grouping::masked;
  int const groups = groups_of(c);
  std::int64_t const rows = masked ? c.m * groups : c.m, groups_b = by_k ? 1 : groups,
                     groups_d = by_k ? groups : 1;
  // The blocks of K: of each group its own.
  std::int64_t blocks = by_k ? 0 : ceil_div(c.k, kScaleBlock);
  for (int g = 0; by_k && g < groups; ++g) {
    int const begin = g == 0 ? 0 : c.ends[static_cast<std::size_t>(g - 1)];
    blocks += ceil_div(c.ends[static_cast<std::size_t>(g)] - begin, kScaleBlock);
  }
  std::int64_t const ld = whole_lines(c.k, config.a, 16), ldd = whole_lines(c.n, config.out, 16);
  void* const ends = bench.machine().allocate(sizeof c.ends, "ends");
  bench.machine().upload(ends, c.ends.data(), sizeof c.ends);

  GroupedGemmSm90Params p;
  p.a = sim::encode(describe(
      TmaMatrices{config.a, bench.input("A", config.a, c.k, rows, ld), rows, c.k, 1, ld, 0},
      a_fetch(config)));
  p.b = sim::encode(
      describe(TmaMatrices{config.b, bench.input("B", config.b, c.k, c.n * groups_b, ld), c.n, c.k,
                           groups_b, ld, ld * c.n},
               b_fetch(config)));
  p.scale_a = p.scale_b = p.a;
  if (config.scales != Scales::none)
    p.scale_a = scales(bench, "scales of A", rows, blocks, 1, scale_box(config));
  if (config.scales == Scales::rows_by_rows)
    p.scale_b = scales(bench, "scales of B", c.n, blocks, groups_b, config.block_n);
  int const blocks_n = ceil_div(c.n, kScaleBlock);
  if (config.scales == Scales::rows_by_blocks)
    p.b_blocks = {.scale = static_cast<float const*>(
                      bench.input("block scales", DType::f32, blocks, blocks_n * groups_b, blocks)),
                  .blocks_n = blocks_n,
                  .blocks_k = static_cast<int>(blocks)};
  p.tiles = {.grouping = c.grouping,
             .groups = groups,
             .ends = static_cast<int const*>(ends),
             .rows = c.m,
             .depth = c.k,
             .tiles_n = ceil_div(c.n, config.block_n * config.cluster_n)};
  std::int64_t const rows_d = by_k ? c.m : rows;
  void* const d = bench.output("D", config.out, c.n, rows_d * groups_d, ldd);
  if (c.in_place)  // some number
    bench.machine().fill(d, 0x3c,
                         static_cast<std::size_t>(ldd * (rows_d * groups_d - 1) + c.n) *
                             static_cast<std::size_t>(bits(config.out) / 8));
  p.out = {.d = d,
           .c = c.in_place ? d
                : c.adds   ? bench.input("C", config.out, c.n, rows_d * groups_d, ldd)
                           : nullptr,
           .ldd = ldd,
           .ldc = ldd,
           .d_group_stride = by_k ? ldd * c.m : 0,
           .c_group_stride = by_k ? ldd * c.m : 0,
           .n = c.n,
           .vectors = c.n * bits(config.out) % 128 == 0};
  bool const added = c.in_place && config.out == DType::f32;
  p.d = p.last_d = p.a;
  if (p.out.vectors && (p.out.c == nullptr || added)) {
    TmaMatrices const matrices = {config.out, d, rows_d, c.n, groups_d, ldd, ldd * rows_d};
    PerPiece<TmaBoxes> const pieces = store_boxes(epilogue(config));
    p.d = sim::encode(describe(matrices, pieces.whole));
    p.last_d = sim::encode(describe(matrices, pieces.last));
    p.store = added ? GroupedStore::added : GroupedStore::pieces;
  }
  return p;
}

template <int I> MutatedKernel mutated_grouped_case() {
  return {kGroupedCases[I].name, "grouped_gemm_sm90", [](sim::Options options) {
            options.throw_on_finding = false;
            Bench bench(std::move(options));
            using Kernel = GroupedKernelOf<I>;
            auto const params = grouped_params(bench, kGroupedCases[I]);
            sim::Report report = sim::launch<Kernel>(bench.machine(), Kernel::grid(params), params,
                                                     global_tensors(Kernel::config, params));
            return bench.outcome(std::move(report));
          }};
}

template <int... I> std::vector<MutatedKernel> grouped_cases(std::integer_sequence<int, I...>) {
  return {mutated_grouped_case<I>()...};
}

}  // namespace

std::vector<MutatedKernel> mutated_grouped() {
  return grouped_cases(
      std::make_integer_sequence<int, static_cast<int>(std::size(kGroupedCases))>());
}

}  // namespace tegula::mutants
