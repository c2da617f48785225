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
constexpr SwizzledLayout tile_layout(SwizzledLayout const& layout) {
  Layout const& l = layout.layout;
  for (int i = 0; i < l.count; ++i) {
    if (l.strides[i] < 0 && l.extents[i] > 1)
      refuse("SharedTile", "a stride is negative: elements would lie before the tile", l);
  }
  if (layout.offset < 0)
    refuse("SharedTile", "the offset is negative: elements would lie before the tile", layout);
  return layout;
}
constexpr SwizzledLayout tile_layout(Layout const& layout) {
  return tile_layout(SwizzledLayout{Swizzle(), 0, layout});
}
constexpr SwizzledLayout tile_layout(OperandTile const& tile) { return swizzled_operand(tile); }
template <auto L> struct TileLayout {
  static constexpr SwizzledLayout value = tile_layout(L);
  static constexpr std::int64_t cosize = value.cosize();
};

/// The bytes that a tile begins at a multiple of: 128, as TMA asks, or the swizzle's period.
constexpr int tile_alignment(Swizzle const& swizzle, int element_bytes) {
  std::int64_t const period = swizzle.identity() ? 0 : swizzle.period() * element_bytes;
  int alignment = 128;
  while (alignment < period) alignment *= 2;
  return alignment;
}

/// Whether no two elements of a tile are the same place. Of layouts whose leaves do not nest and
/// that are large nothing is said: true.
constexpr bool is_one_to_one(Layout const& layout) {
  std::int64_t strides[kMaxLeaves] = {}, extents[kMaxLeaves] = {};
  int count = 0;
  for (int i = 0; i < layout.count; ++i) {
    if (layout.extents[i] == 1) continue;
    int at = count++;
    for (; at > 0 && strides[at - 1] > layout.strides[i]; --at)
      strides[at] = strides[at - 1], extents[at] = extents[at - 1];
    strides[at] = layout.strides[i], extents[at] = layout.extents[i];
  }
  bool nests = true;
  std::int64_t reach = 0;  // of the leaves so far
  for (int i = 0; i < count; ++i) {
    if (strides[i] == 0) return false;
    nests = nests && strides[i] > reach;
    reach += strides[i] * (extents[i] - 1);
  }
  constexpr std::int64_t kLooked = 1024;
  if (nests) return true;
  if (layout.size() > reach + 1) return false;
  if (reach >= kLooked) return true;
  bool taken[kLooked] = {};
  for (std::int64_t i = 0; i < layout.size(); ++i) {
    std::int64_t const at = layout(i);
    if (taken[at]) return false;
    taken[at] = true;
  }
  return true;
}
template <class Tile> struct WrittenTile {
  static constexpr bool value = is_one_to_one(Tile::layout.layout);
};
}  // namespace detail

/// A tile of T in shared memory. `L` maps the tile's coordinate (and, as a last mode, the pipeline
/// stage) to an offset in elements: a SwizzledLayout, a Layout, or an OperandTile, which stands for
/// its layout.
///
/// No stride is negative: a tile's elements do not lie before it. Elements may share a place (a
/// stride of 0) in a tile that is read; copy to such a tile from global memory is refused.
///
/// A tile starts at a multiple of its swizzle's period, so that an address of the tile is its base
/// with the swizzled offset in the low bits, and at least of 128 bytes, as TMA asks.
template <class T, auto L> struct SharedTile {
  using Element = T;
  static constexpr SwizzledLayout layout = detail::TileLayout<L>::value;

  static constexpr int alignment = detail::tile_alignment(layout.swizzle, sizeof(T));

  alignas(alignment) T data[detail::TileLayout<L>::cosize];
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
