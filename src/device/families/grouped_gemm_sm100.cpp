// What a launch of grouped_gemm_sm100 takes by the rough model of gemm_sm100, and what it is
// launched with.

#include "grouped_gemm_sm100.hpp"

#include <algorithm>

#include "tegula/device/gemm_plan.hpp"
#include "tegula/device/tensor_map.hpp"

namespace tegula::device {

GroupedGemmChoice FamilyTraits<GroupedGemmSm100Family>::predict(
    GroupedGemmArguments const& arguments, GroupedGemmSm100Config const& c,
    DeviceProperties const& device, GroupedGemmConstraints const& wanted) {
  GroupedGemmArguments const g = with_defaults(arguments);
  bool const by_k = g.grouping == Grouping::k;
  std::int64_t const rows = std::max<std::int64_t>(*g.expected_rows, 1),
                     depth = by_k ? ceil_div(g.k, g.groups) : g.k;
  GemmChoice const one = FamilyTraits<GemmSm100Family>::predict(
      {.in = g.in, .out = g.out, .m = rows, .n = g.n, .k = depth, .batch = g.groups}, c, device, {},
      {});
  std::int64_t const tiles_m = ceil_div(rows, c.ctas * c.block_m),
                     tiles_n = ceil_div(g.n, c.block_n);
  // The groups may differ from what is expected: as many clusters as there may be tiles.
  std::int64_t const most =
      by_k ? one.cost.tiles : (ceil_div(rows_of_a(g), c.ctas * c.block_m) + g.groups) * tiles_n;
  GroupedGemmChoice choice{.kernel = grouped_gemm_sm100};
  choice.clusters = wanted.clusters.value_or(
      static_cast<int>(std::clamp<std::int64_t>(device.multiprocessors / c.ctas, 1, most)));
  choice.band = wanted.band.value_or(static_cast<int>(std::clamp<std::int64_t>(tiles_m, 1, 8)));
  choice.cost = {.tiles = one.cost.tiles * c.ctas,
                 .waves = one.cost.waves,
                 .tensor = one.cost.tensor,
                 .l2 = one.cost.l2,
                 .dram = one.cost.dram,
                 .epilogue = one.cost.epilogue,
                 .total = one.cost.total};
  return choice;
}

GroupedGemmSm100Params FamilyTraits<GroupedGemmSm100Family>::lower(
    Machine const& machine, GroupedGemmArguments const& arguments,
    GroupedGemmChoice const& choice) {
  GroupedGemmArguments const g = with_defaults(arguments);
  GroupedGemmSm100Config const& c = configuration(grouped_gemm_sm100, choice.configuration);
  bool const masked = g.grouping == Grouping::masked, many_b = has_many_b(g.grouping);
  // The operands of a batch; not of k alone, where all groups are columns of one.
  GemmArguments const batch = with_defaults({.in = g.in,
                                             .in_b = g.in_b,
                                             .b_major = Major::k,
                                             .m = g.m,
                                             .n = g.n,
                                             .k = g.k,
                                             .batch = many_b ? g.groups : 1,
                                             .a = g.a,
                                             .b = g.b,
                                             .lda = g.lda,
                                             .ldb = g.ldb,
                                             .a_batch_stride = masked ? g.m * *g.lda : 0,
                                             .b_batch_stride = *g.b_group_stride});
  GroupedGemmSm100Params p{
      .problem = tma_problem(machine, batch, a_fetch(c), b_fetch(c)),
      .schedule = {.clusters = choice.clusters, .tiles = group_tiles(g, c.block_n, choice.band)},
      .epilogue = grouped_output(g)};
  p.scale_a = p.scale_b = p.problem.a;  // where they are not read, any map does
  if (c.scale.block == 0) return p;
  auto const map = [&](void const* scales, std::int64_t rows, bool batched, int times_128_rows) {
    return encode(machine, block_scale_map(scales, rows, g.k, c.scale, batched ? g.groups : 1,
                                           scale_pieces(c), times_128_rows));
  };
  p.scale_a = map(g.block_scale_a, g.m, p.problem.a_batched, 1);
  p.scale_b = map(g.block_scale_b, g.n, p.problem.b_batched, scale_rows_b(c));
  return p;
}

}  // namespace tegula::device
