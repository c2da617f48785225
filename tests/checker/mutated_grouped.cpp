// grouped_gemm_sm90 in its forms among the kernels that are mutated, in small configurations.

#include "mutated_groups.hpp"
#include "tegula/kernel/grouped_gemm_sm90.hpp"

namespace tegula::mutants {
namespace {

using GroupedCase = GroupsCase<GroupedGemmSm90Config>;

/// Where a tile has as many steps as the ring has stages (bf16), or the last group as many as bring
/// the end to the stage that told an empty group's tile (by k), a slot that tells a tile is written
/// again as soon as its stage is given back.
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
     .k = 704,
     .ends = {16, 16, 620},
     .in_place = true},
    {.name = "grouped_gemm_sm90_bf16",
     .config =
         {.a = DType::bf16, .b = DType::bf16, .scales = Scales::none, .block_m = 64, .block_n = 64},
     .grouping = Grouping::contiguous,
     .m = 150,
     .n = 77,
     .k = 820,
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
     .k = 560,
     .ends = {72, 72, 502}},
    {.name = "grouped_gemm_sm90_one",
     .config =
         {.a = DType::bf16, .b = DType::bf16, .scales = Scales::none, .block_m = 64, .block_n = 64},
     .m = 70,
     .n = 58,
     .k = 80},
};

template <int I> struct GroupedKernelOf : GroupedGemmSm90<kGroupedCases[I].config> {};

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
  std::int64_t const rows = std::int64_t{c.m} * c.of_a(), groups_b = c.of_b();
  // The blocks of K: of each group its own.
  std::int64_t blocks = c.by_k() ? 0 : ceil_div(c.k, kScaleBlock);
  for (int g = 0; c.by_k() && g < c.groups(); ++g) {
    int const begin = g == 0 ? 0 : c.ends[static_cast<std::size_t>(g - 1)];
    blocks += ceil_div(c.ends[static_cast<std::size_t>(g)] - begin, kScaleBlock);
  }
  std::int64_t const ld = whole_lines(c.k, config.a, 16);

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
  p.tiles = tiles_of(bench, c, config.block_n * config.cluster_n);
  p.out = output_of(bench, c);
  bool const added = c.in_place && config.out == DType::f32;
  p.d = p.last_d = p.a;
  if (p.out.vectors && (p.out.c == nullptr || added)) {
    std::int64_t const groups_d = c.by_k() ? c.groups() : 1, rows_d = c.m * c.of_d() / groups_d;
    TmaMatrices const matrices = {config.out, p.out.d, rows_d,          c.n,
                                  groups_d,   c.ldd(), c.ldd() * rows_d};
    PerPiece<TmaBoxes> const pieces = store_boxes(epilogue(config));
    p.d = sim::encode(describe(matrices, pieces.whole));
    p.last_d = sim::encode(describe(matrices, pieces.last));
    p.store = added ? GroupedStore::added : GroupedStore::pieces;
  }
  return p;
}

}  // namespace

std::vector<MutatedKernel> mutated_grouped() {
  return mutated_cases<kGroupedCases>([]<int I> {
    static constexpr GroupedCase const& c = kGroupedCases[I];
    return mutated_case<GroupedKernelOf<I>>(
        c.name, "grouped_gemm_sm90", c.config, [](sim::Options&) {},
        [](Bench& bench) { return grouped_params(bench, c); });
  });
}

}  // namespace tegula::mutants
