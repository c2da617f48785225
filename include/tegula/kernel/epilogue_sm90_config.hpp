#pragma once

#include <cstdint>

#include "tegula/arch/tensor_map.hpp"
#include "tegula/kernel/activation.hpp"
#include "tegula/numeric/dtype.hpp"
#include "tegula/tensor/tma_box.hpp"

/// What the epilogues of Hopper's GEMMs (epilogue_sm90.hpp, transposed_epilogue_sm90.hpp) are made
/// from and launched with.
namespace tegula {

/// One epilogue: D(m, n) = activation(scale A B + beta C + bias), of tiles whose rows of D are `n`
/// columns, or `narrow_n` (0: none are narrower). Each of `warps` warps, whose threads are numbered
/// from `first_thread` on, has `buffers` pieces of 16 rows in shared memory for D on its way out;
/// or with `rows` of 64 each warpgroup has that many of 64 rows, which its warps write together.
///
/// Or pieces lie in a `ring` of that many stages, each of which has `stage_pieces`, the same number
/// for each warpgroup: one stage is lent at a time.
///
/// Where D is `transposed`, its columns are contiguous in global memory: a tile's rows lie along
/// them. Then C and a bias are not added. Pieces have 64 rows; without buffers D leaves straight
/// from registers.
struct EpilogueSm90Spec {
  DType out = DType::bf16;
  int n = 0;
  int narrow_n = 0;
  int warps = 4;
  int rows = 16;       ///< of a piece
  int warp_rows = 16;  ///< from one warp's first row to the next one's
  int first_thread = 0;
  int buffers = 2;
  int ring = 0;            ///< stages; 0: pieces have memory of their own
  int stage_pieces = 0;    ///< of a stage
  int piece_bytes = 128;   ///< of a row of a piece, at most
  bool activates = false;  ///< whether there are activations: which, says EpilogueSm90Params
  bool transposed = false;

  friend constexpr bool operator==(EpilogueSm90Spec const&, EpilogueSm90Spec const&) = default;
};

/// Columns of a piece: as many as may be, where the tile is that wide.
constexpr int store_n(EpilogueSm90Spec const& s) {
  if (s.transposed) return s.n < 64 ? s.n : 64;  // whose rows are 128 bytes in memory
  int columns = 8 * s.piece_bytes / bits(s.out);
  while (columns > s.n) columns /= 2;
  return columns;
}
/// The columns of the last piece of a row of the tile, which may be narrower; likewise of a
/// narrower tile.
constexpr int last_store_n(EpilogueSm90Spec const& s) { return (s.n - 1) % store_n(s) + 1; }
constexpr int last_narrow_store_n(EpilogueSm90Spec const& s) {
  return s.narrow_n == 0 ? last_store_n(s) : (s.narrow_n - 1) % store_n(s) + 1;
}

/// Pieces that all warps write at a time, each its own, or each warpgroup; and the bytes of one.
constexpr int pieces_at_once(EpilogueSm90Spec const& s) { return s.warps * 16 / s.rows; }
constexpr int piece_bytes(EpilogueSm90Spec const& s) {
  return s.rows * store_n(s) * bits(s.out) / 8;
}

/// The pieces of all warps in shared memory: (rows, store_n, buffers of all warps, or a ring's).
constexpr OperandTile store_tile(EpilogueSm90Spec const& s) {
  return {bits(s.out), s.rows, store_n(s), s.transposed ? 0 : 1,
          s.ring > 0 ? s.ring * s.stage_pieces : s.buffers * pieces_at_once(s)};
}
/// Something for each width of the pieces that a row of a tile is stored in.
template <class T> struct PerPiece { T whole, last, last_narrow; };

/// The TMA boxes of C and D: a piece is one.
constexpr PerPiece<TmaBoxes> store_boxes(EpilogueSm90Spec const& s) {
  TmaBoxes const whole = tma_boxes(store_tile(s));
  return {whole, narrowed(whole, last_store_n(s)), narrowed(whole, last_narrow_store_n(s))};
}

/// Elements of D that TMA stores at once: at the end of a row it stores 16 bytes or none.
constexpr int store_unit(DType out) { return 128 / bits(out); }
/// The columns of D, from the first, that TMA stores; the last few are stored one by one.
TEGULA_HOST_DEVICE constexpr int columns_by_tma(int n, int store_unit) {
  return n / store_unit * store_unit;
}

/// What the epilogue is launched with. The tensor maps describe C as (n, m, batch) and D as
/// (columns_by_tma(n, store_unit(out)), m, batch), with the boxes of store_boxes(); a transposed D
/// as (m, n, batch), or not at all, where its spec has no buffers.
struct EpilogueSm90Params {
  PerPiece<TensorMap> c;      ///< in the output type; used where beta is not 0
  PerPiece<TensorMap> d;      ///< any, where columns_by_tma is 0
  void* d_address = nullptr;  ///< D, ...
  std::int64_t ldd = 0;       ///< ... its rows, or, transposed, its columns, that many elements
  std::int64_t d_batch_stride =
      0;                       ///< apart, and batches: used there, or if columns_by_tma is not n
  void const* bias = nullptr;  ///< n values in the output type, or null
  float const* scale_a = nullptr;  ///< one value each, or null: fp8's scale of a tensor
  float const* scale_b = nullptr;
  float alpha = 1;
  float beta = 0;
  bool c_batched = false;                    ///< false: all batches share C
  Activation activation = Activation::none;  ///< of a spec that activates; else none is applied
};

}  // namespace tegula
