// What gemm_sm90 is launched with, tensor maps included.

#include "backend.hpp"
#include "table_entry.hpp"
#include "tegula/device/launch.hpp"
#include "tegula/device/tensor_map.hpp"

namespace tegula {
namespace {

/// `batches` matrices of `rows` rows of `row` contiguous elements. The stride of an axis of extent 1 is never
/// taken: TMA gets one that it accepts.
struct Matrices {
  DType type;
  void const* address;
  std::int64_t row, rows, batches, ld, batch_stride;
};

/// The swizzle is that of rows of `span_row` elements: box_row, unless 0.
TensorMap encode(Machine const& machine, Matrices const& x, int box_row, int box_rows, int span_row = 0) {
  int const element = bits(x.type) / 8;
  auto const bytes = [&](std::int64_t extent, std::int64_t stride) {
    return extent == 1 ? std::int64_t{16} : stride * element;
  };
  int const span = (span_row != 0 ? span_row : box_row) * element;  // 32, 64 or 128 bytes
  int swizzle = 0;
  while (swizzle < 3 && (16 << swizzle) < span) ++swizzle;
  return encode(machine, {.dtype = x.type,
                          .rank = 3,
                          .address = x.address,
                          .extents = {x.row, x.rows, x.batches},
                          .strides = {bytes(x.rows, x.ld), bytes(x.batches, x.batch_stride)},
                          .box = {box_row, box_rows, 1},
                          .swizzle = static_cast<TmaSwizzle>(swizzle),
                          .l2_promotion = TmaL2Promotion::b128});
}

}  // namespace

GemmSm90Params lower(Machine const& machine, GemmArguments const& g, GemmChoice const& choice) {
  GemmSm90Config const& c = device::entry("gemm_sm90", gemm_sm90_configurations(), choice.configuration);
  bool const a_batched = g.batch > 1 && g.a_batch_stride != 0;
  bool const b_batched = g.batch > 1 && g.b_batch_stride != 0;
  auto const operand = [&](DType type, void const* address, Major major, std::int64_t mn, std::int64_t ld,
                           bool batched, std::int64_t batch_stride, OperandBoxes const& boxes) {
    bool const k_major = major == Major::k;
    Matrices const x = {type, address,     k_major ? g.k : mn, k_major ? mn : g.k, batched ? g.batch : 1,
                        ld,   batch_stride};
    return k_major ? encode(machine, x, block_k(c), boxes.box_mn)
                   : encode(machine, x, boxes.box_mn, block_k(c));
  };
  bool const c_batched = g.batch > 1 && g.c_batch_stride != 0;
  auto const output = [&](void const* address, std::int64_t columns, std::int64_t batches, std::int64_t ld,
                          std::int64_t batch_stride, int piece) {
    return encode(machine, {g.out, address, columns, g.m, batches, ld, batch_stride}, piece, 16, store_n(c));
  };
  int const by_tma = columns_by_tma(static_cast<int>(g.n), store_unit(g.out));
  auto const stored = [&](int piece) {
    return output(g.d, by_tma > 0 ? by_tma : g.n, g.batch, g.ldd, g.d_batch_stride, piece);
  };
  TensorMap const d = stored(store_n(c));
  auto const c_map = [&](int piece) {
    return g.beta != 0 ? output(g.c, g.n, c_batched ? g.batch : 1, g.ldc, g.c_batch_stride, piece) : d;
  };
  return {.k = static_cast<int>(g.k),
          .clusters = choice.clusters,
          .a_batched = a_batched,
          .b_batched = b_batched,
          .first_tiles = first_tiles(choice.tiling, tile_widths(c), choice.clusters, cluster_size(c),
                                     machine.multiprocessors()),
          .tiling = choice.tiling,
          .a = operand(g.in, g.a, g.a_major, g.m, g.lda, a_batched, g.a_batch_stride, a_boxes(c)),
          .b = operand(g.in_b, g.b, g.b_major, g.n, g.ldb, b_batched, g.b_batch_stride, b_boxes(c)),
          .c = c_map(store_n(c)),
          .c_last = c_map(last_store_n(c)),
          .c_last_narrow = choice.tiling.fitted() ? c_map(last_narrow_store_n(c)) : d,
          .d = d,
          .d_last = last_store_n(c) != store_n(c) ? stored(last_store_n(c)) : d,
          .d_last_narrow = choice.tiling.fitted() ? stored(last_narrow_store_n(c)) : d,
          .d_address = g.d,
          .ldd = g.ldd,
          .d_batch_stride = g.d_batch_stride,
          .bias = g.bias,
          .scale_a = g.scale_a,
          .scale_b = g.scale_b,
          .m = static_cast<int>(g.m),
          .n = static_cast<int>(g.n),
          .c_batched = c_batched,
          .alpha = g.alpha,
          .beta = g.beta,
          .pace_steps = choice.pace_steps,
          .pace = choice.pace_steps > 0 && c.split_k == 1 ? machine.backend().pace_counters() : nullptr};
}

}  // namespace tegula
