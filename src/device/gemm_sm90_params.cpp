// What gemm_sm90 is launched with, tensor maps included.

#include "backend.hpp"
#include "table_entry.hpp"
#include "tegula/device/launch.hpp"
#include "tegula/device/tensor_map.hpp"

namespace tegula {
namespace {

GemmSm90Problem problem_of(Machine const& machine, GemmArguments const& g, GemmSm90Config const& c) {
  bool const a_batched = g.batch > 1 && *g.a_batch_stride != 0;
  bool const b_batched = g.batch > 1 && *g.b_batch_stride != 0;
  TmaMatrices const a = {g.in, g.a, g.m, g.k, a_batched ? g.batch : 1, *g.lda, *g.a_batch_stride};
  TmaMatrices const b = {*g.in_b, g.b, g.n, g.k, b_batched ? g.batch : 1, *g.ldb, *g.b_batch_stride};
  return {.a = encode(machine, describe(a, a_fetch(c))),
          .b = encode(machine, describe(b, b_fetch(c))),
          .m = static_cast<int>(g.m),
          .n = static_cast<int>(g.n),
          .k = static_cast<int>(g.k),
          .a_batched = a_batched,
          .b_batched = b_batched};
}

/// `two_widths`: whether D is cut into tiles of both; else nobody looks at the maps of narrower ones.
EpilogueSm90Params epilogue_of(Machine const& machine, GemmArguments const& g, EpilogueSm90Spec const& s,
                               bool two_widths) {
  PerPiece<TmaBoxes> const boxes = store_boxes(s);
  auto const maps = [&](TmaMatrices const& x) {
    TensorMap const whole = encode(machine, describe(x, boxes.whole));
    return PerPiece<TensorMap>{
        .whole = whole,
        .last = boxes.last == boxes.whole ? whole : encode(machine, describe(x, boxes.last)),
        .last_narrow = two_widths ? encode(machine, describe(x, boxes.last_narrow)) : whole};
  };
  bool const c_batched = g.batch > 1 && *g.c_batch_stride != 0;
  int const by_tma = columns_by_tma(static_cast<int>(g.n), store_unit(*g.out));
  PerPiece<TensorMap> const d =
      maps({*g.out, g.d, g.m, by_tma > 0 ? by_tma : g.n, g.batch, *g.ldd, *g.d_batch_stride});
  return {.c = g.beta != 0 ? maps({*g.out, g.c, g.m, g.n, c_batched ? g.batch : 1, *g.ldc, *g.c_batch_stride})
                           : d,
          .d = d,
          .d_address = g.d,
          .ldd = *g.ldd,
          .d_batch_stride = *g.d_batch_stride,
          .bias = g.bias,
          .scale_a = g.scale_a,
          .scale_b = g.scale_b,
          .alpha = g.alpha,
          .beta = g.beta,
          .c_batched = c_batched};
}

}  // namespace

GemmSm90Params lower(Machine const& machine, GemmArguments const& arguments, GemmChoice const& choice) {
  GemmArguments const g = with_defaults(arguments);
  GemmSm90Config const& c = device::entry("gemm_sm90", gemm_sm90_configurations(), choice.configuration);
  bool const meet = choice.lockstep_steps > 0 && c.split_k == 1;
  return {.problem = problem_of(machine, g, c),
          .schedule = {.clusters = choice.clusters,
                       .initial_tiles = initial_tiles(choice.tiling, tile_widths(c), choice.clusters,
                                                      cluster_size(c), machine.multiprocessors()),
                       .tiling = choice.tiling,
                       .lockstep_steps = choice.lockstep_steps,
                       .lockstep = meet ? static_cast<LockstepCounters*>(
                                              machine.backend().workspace(sizeof(LockstepCounters)))
                                        : nullptr},
          .epilogue = epilogue_of(machine, g, epilogue(c), choice.tiling.fitted())};
}

}  // namespace tegula
