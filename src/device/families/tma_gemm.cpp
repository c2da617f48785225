#include "tma_gemm.hpp"

#include <algorithm>
#include <cstddef>

#include "problem.hpp"
#include "tegula/arch/tensor_map_description.hpp"
#include "tegula/device/tensor_map.hpp"
#include "tegula/kernel/block_scale.hpp"
#include "tegula/kernel/gemm_sm100_config.hpp"

namespace tegula::device {
namespace {

/// An operand as its tensor map counts: `pairs` of e2m1 are bytes.
TmaMatrices operand(DType type, bool pairs, void const* address, std::int64_t mn, std::int64_t k,
                    std::int64_t batches, std::int64_t ld, std::int64_t batch_stride) {
  int const pack = pairs ? 2 : 1;
  return {pack > 1 ? DType::u8 : type, address, mn, ceil_div(k, pack), batches, ld / pack,
          batch_stride / pack};
}

/// Its tensor map. The stride of an axis of extent 1 is never taken; of elements that are unpacked
/// TMA wants multiples of 32 bytes there, too.
TensorMapDescription operand_map(TmaMatrices const& x, TmaBoxes const& boxes) {
  TensorMapDescription map = describe(x, boxes);
  if (!is_unpacked(map.dtype)) return map;
  for (std::size_t axis = 1; axis < 3; ++axis)
    if (map.extents[axis] == 1) map.strides[axis - 1] = 32;
  return map;
}

}  // namespace

int resident_clusters(int size, DeviceProperties const& device, GemmCostModel const& model) {
  double const share = size <= 2 ? 1 : model.clustered_share - (size % 2 == 0 ? 0 : model.odd_loss);
  double const usable = share * device.multiprocessors;
  return std::max(1, static_cast<int>(usable) / size);
}

GemmSm90Problem tma_problem(Machine const& machine, GemmArguments const& g, TmaBoxes const& a_boxes,
                            TmaBoxes const& b_boxes, std::optional<int> rows_a,
                            std::optional<int> rows_b) {
  bool const a_batched = g.batch > 1 && *g.a_batch_stride != 0;
  bool const b_batched = g.batch > 1 && *g.b_batch_stride != 0;
  TmaMatrices const a = operand(g.in, are_pairs(g.in, *g.in_b), g.a, g.m, g.k,
                                a_batched ? g.batch : 1, *g.lda, *g.a_batch_stride);
  TmaMatrices const b = operand(*g.in_b, are_pairs(g.in, *g.in_b), g.b, g.n, g.k,
                                b_batched ? g.batch : 1, *g.ldb, *g.b_batch_stride);
  TmaBoxes const last_a = rows_a ? first_rows(a_boxes, *rows_a) : a_boxes,
                 last_b = rows_b ? first_rows(b_boxes, *rows_b) : b_boxes;
  // The last tile may be the only one.
  auto const map_of = [&](TmaMatrices const& x, TmaBoxes const& whole, TmaBoxes const& last) {
    return encode(machine, operand_map(x, x.mn <= rows_of_tile(whole) ? last : whole));
  };
  auto const last_map = [&](TmaMatrices const& x, std::optional<int> rows, TmaBoxes const& last) {
    return rows ? encode(machine, operand_map(x, last)) : TensorMap{};
  };
  return {.a = map_of(a, a_boxes, last_a),
          .b = map_of(b, b_boxes, last_b),
          .m = static_cast<int>(g.m),
          .n = static_cast<int>(g.n),
          .k = static_cast<int>(g.k),
          .unloaded_a = rows_of_tile(a_boxes) - rows_of_tile(last_a),
          .unloaded_b = rows_of_tile(b_boxes) - rows_of_tile(last_b),
          .a_batched = a_batched,
          .b_batched = b_batched,
          .a_last = last_map(a, rows_a, last_a),
          .b_last = last_map(b, rows_b, last_b)};
}

TensorMapDescription block_scale_map(void const* scales, std::int64_t rows, std::int64_t k,
                                     BlockScale const& how, std::int64_t batches, int pieces,
                                     int times_128_rows) {
  std::int64_t const pieces_m = scale_pieces_rows(static_cast<int>(rows)),
                     pieces_k = scale_pieces_k(static_cast<int>(k), how.block),
                     of_rows = kScalePieceBytes * pieces_k;
  return {.dtype = DType::u8,
          .rank = 4,
          .address = scales,
          .extents = {kScaleBoxBytes, 2 * pieces_k, pieces_m, batches},
          .strides = {kScaleBoxBytes, of_rows, of_rows * pieces_m},
          .box = {kScaleBoxBytes, 2 * pieces, times_128_rows, 1}};
}

EpilogueSm90Params tma_epilogue(Machine const& machine, GemmArguments const& g,
                                EpilogueSm90Spec const& s, bool two_widths) {
  auto const maps = [&](TmaMatrices const& x) {
    PerPiece<TmaBoxes> const boxes = store_boxes(s);
    TensorMap const whole = encode(machine, describe(x, boxes.whole));
    return PerPiece<TensorMap>{
        .whole = whole,
        .last = boxes.last == boxes.whole ? whole : encode(machine, describe(x, boxes.last)),
        .last_narrow = two_widths ? encode(machine, describe(x, boxes.last_narrow)) : whole};
  };
  if (s.transposed)
    return {.d = s.buffers > 0 ? maps({*g.out, g.d, g.m, g.n, g.batch, *g.ldd, *g.d_batch_stride})
                               : PerPiece<TensorMap>{},
            .d_address = g.d,
            .ldd = *g.ldd,
            .d_batch_stride = *g.d_batch_stride,
            .scale_a = g.scale_a,
            .scale_b = g.scale_b,
            .alpha = g.alpha,
            .activation = g.activation};
  bool const c_batched = g.batch > 1 && *g.c_batch_stride != 0;
  int const by_tma = columns_by_tma(static_cast<int>(g.n), store_unit(*g.out));
  PerPiece<TensorMap> const d =
      maps({*g.out, g.d, g.m, by_tma > 0 ? by_tma : g.n, g.batch, *g.ldd, *g.d_batch_stride});
  return {.c = g.beta != 0 ? maps({*g.out, g.c, g.m, g.n, c_batched ? g.batch : 1, *g.ldc,
                                   *g.c_batch_stride})
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
          .c_batched = c_batched,
          .activation = g.activation};
}

}  // namespace tegula::device
