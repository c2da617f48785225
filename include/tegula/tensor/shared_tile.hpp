#pragma once

#include <cstdint>

#include "tegula/layout/bank_conflicts.hpp"
#include "tegula/layout/coalesce.hpp"
#include "tegula/layout/layout.hpp"
#include "tegula/layout/swizzle.hpp"
#include "tegula/tensor/coordinates.hpp"

namespace tegula {

/// The layout of a tile of matrix operands, in the few numbers that it follows from: `stages` tiles
/// of `mn` x `k` elements of `bits` bits, of which `contiguous` (0: mn, 1: k) is contiguous in
/// global memory. A short template argument: SharedTile<bfloat16, OperandTile{16, 128, 64, 1, 2}>.
struct OperandTile {
  int bits = 0;
  int mn = 0;
  int k = 0;
  int contiguous = 1;
  int stages = 1;

  friend constexpr bool operator==(OperandTile const&, OperandTile const&) = default;
};

/// The layout of an operand's tile; coordinates (mn, k, stage), without the stage where there
/// is one.
///
/// The contiguous axis is cut into blocks of at most 128 bytes, the span of the 32 banks; a block's
/// rows follow each other, and a swizzle spreads the 16-byte pieces at the same position of eight
/// consecutive rows over all banks, so that ldmatrix, which reads such pieces, and 16-byte stores
/// along a row are both free of conflicts.
constexpr SwizzledLayout swizzled_operand(OperandTile const& t) {
  if (t.contiguous != 0 && t.contiguous != 1)
    refuse("swizzled_operand", "the contiguous axis is 0 (mn) or 1 (k)", t.contiguous);
  if (t.mn < 1 || t.k < 1 || t.stages < 1)
    refuse("swizzled_operand", "mn, k and stages are at least 1", t.mn, t.k, t.stages);
  if (t.bits != 8 && t.bits != 16 && t.bits != 32 && t.bits != 64)
    refuse("swizzled_operand", "elements have 8, 16, 32 or 64 bits", t.bits);
  int const piece = 128 / t.bits;  // elements in 16 bytes
  int const extent = t.contiguous == 0 ? t.mn : t.k;
  int const rows = t.contiguous == 0 ? t.k : t.mn;
  int block = 1024 / t.bits;  // elements in 128 bytes
  while (block > piece && extent % block != 0) {
    block /= 2;
  }
  if (extent % block != 0)
    refuse("swizzled_operand", "the contiguous extent must be a multiple of 16 bytes", extent,
           t.bits);
  Layout const contiguous_mode = layout(tuple(block, extent / block), tuple(1, rows * block));
  Layout const strided_mode = layout(rows, block);
  Layout const mn_mode = t.contiguous == 0 ? contiguous_mode : strided_mode;
  Layout const k_mode = t.contiguous == 0 ? strided_mode : contiguous_mode;
  Layout const tile = t.stages == 1 ? make_layout(mn_mode, k_mode)
                                    : make_layout(mn_mode, k_mode, layout(t.stages, t.mn * t.k));
  int log_piece = 0, log_pieces = 0;
  while ((1 << log_piece) < piece) ++log_piece;
  while ((piece << log_pieces) < block) ++log_pieces;
  // Offset bits: [within a piece | piece in the block | row ...]. Row bits that select the same
  // banks are XORed into the piece bits.
  return {Swizzle{log_pieces, log_piece, 3}, 0, tile};
}
constexpr SwizzledLayout swizzled_operand(int bits, int mn, int k, int contiguous, int stages = 1) {
  return swizzled_operand(OperandTile{bits, mn, k, contiguous, stages});
}

namespace detail {
constexpr SwizzledLayout tile_layout(SwizzledLayout const& layout) { return layout; }
constexpr SwizzledLayout tile_layout(Layout const& layout) { return {Swizzle(), 0, layout}; }
constexpr SwizzledLayout tile_layout(OperandTile const& tile) { return swizzled_operand(tile); }
template <auto L> struct TileLayout {
  static constexpr SwizzledLayout value = tile_layout(L);
  static constexpr std::int64_t cosize = value.cosize();
};
}  // namespace detail

/// A tile of T in shared memory. `L` maps the tile's coordinate (and, as a last mode, the pipeline
/// stage) to an offset in elements: a SwizzledLayout, a Layout, or an OperandTile, which stands for
/// its layout.
///
/// Every tile starts on a boundary of 1024 bytes, the period of the widest swizzle, so that an
/// address of the tile is its base with the swizzled offset in the low bits.
template <class T, auto L> struct SharedTile {
  using Element = T;
  static constexpr SwizzledLayout layout = detail::TileLayout<L>::value;

  alignas(1024) T data[detail::TileLayout<L>::cosize];
};

/// Whether a tile (mn, k[, stage]) is contiguous along mn.
constexpr bool mn_contiguous(SwizzledLayout const& tile) {
  Layout const mn = coalesce(tile.layout[0]);
  return mn.strides[0] == 1 && mn.extents[0] > 1;
}

/// Wavefronts beyond the fewest possible when a warp's lanes, placed in a tile by a layout of
/// coordinates, each access `bytes` bytes along axis `contiguous` (0: mn, 1: k). The same at every
/// step of the kernels, which leave the bits that select banks as they are.
constexpr int conflicts(SwizzledLayout const& tile, Layout const& lanes, int contiguous,
                        int element_bits, int bytes) {
  return bank_conflicts(
      coordinate_access(lanes, Layout{}, contiguous, tile.layout.shape(), element_bits, bytes),
      tile);
}

}  // namespace tegula
