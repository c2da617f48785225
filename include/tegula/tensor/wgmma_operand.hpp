#pragma once

#include <cstdint>

#include "tegula/arch/shared.hpp"
#include "tegula/layout/coalesce.hpp"
#include "tegula/layout/layout.hpp"
#include "tegula/layout/offset.hpp"
#include "tegula/layout/swizzled_layout.hpp"
#include "tegula/macros.hpp"

/// Operands of wgmma in shared memory: matrix descriptors computed from the layouts of tiles. PTX ISA,
/// "Asynchronous Warpgroup Level Matrix Shared Memory Layout" and "Matrix Descriptor Format".
namespace tegula {

/// What a matrix descriptor says beyond the start address. Offsets are in bytes.
///
/// The hardware sees 16-byte pieces. Of a K-major operand, eight rows (of mn) make a group: the groups lie
/// `stride_offset` apart, and without a swizzle the two pieces of a row `leading_offset` apart (with one they
/// are neighbours, and it is not read). Of an MN-major operand the contiguous axis is cut into blocks of the
/// swizzle's width, and eight rows (of k) make a group: with a swizzle, `leading_offset` is the distance of
/// blocks and `stride_offset` that of groups; without one it is the other way round.
struct WgmmaDescriptor {
  bool mn_major = false;
  int swizzle_bytes = 0;  ///< 0, 32, 64 or 128: the width of a row, which is also the swizzle mode
  int leading_offset = 0;
  int stride_offset = 0;

  /// Bits 32 to 63: stride byte offset / 16 from bit 32, base offset 0, swizzle mode from bit 62.
  TEGULA_HOST_DEVICE constexpr std::uint32_t high() const {
    std::uint32_t const mode = swizzle_bytes == 128  ? 1
                               : swizzle_bytes == 64 ? 2
                               : swizzle_bytes == 32 ? 3
                                                     : 0;
    return static_cast<std::uint32_t>(stride_offset >> 4) | mode << 30;
  }
  /// Bits 16 to 31: leading byte offset / 16. Bits 0 to 13 are start address / 16.
  TEGULA_HOST_DEVICE constexpr std::uint32_t low() const {
    return static_cast<std::uint32_t>(leading_offset >> 4) << 16;
  }

  friend constexpr bool operator==(WgmmaDescriptor const&, WgmmaDescriptor const&) = default;
};

/// The descriptor of a tile (mn, k[, stage]) of elements of `bits` each. Refuses a layout that no descriptor
/// describes.
constexpr WgmmaDescriptor wgmma_descriptor(SwizzledLayout const& tile, int bits) {
  WgmmaDescriptor d;
  if (tile.rank() < 2 || tile.rank() > 3)
    refuse("wgmma_descriptor", "the modes of an operand's tile are mn, k and perhaps the stage", tile);
  if (bits != 8 && bits != 16 && bits != 32)
    refuse("wgmma_descriptor", "elements have 8, 16 or 32 bits", tile, bits);
  int const piece = 128 / bits;  // elements in 16 bytes
  // Strides in elements; offset bits: [within a piece | piece in the row | ...], rows of 128 bytes apart in
  // the source.
  Swizzle const& s = tile.swizzle;
  int log_piece = 0;
  while ((1 << log_piece) < piece) ++log_piece;
  if (!s.identity() && (s.base != log_piece || s.shift != 3 || s.bits > 3))
    refuse("wgmma_descriptor",
           "the swizzle must exchange 16-byte pieces by 128-byte rows: Sw<1 to 3, log2 of 16 bytes, 3>", tile,
           bits);
  if (tile.offset != 0) refuse("wgmma_descriptor", "the tile starts at an offset", tile);
  int const row = piece << s.bits;  // elements in a row of the swizzle
  d.swizzle_bytes = s.identity() ? 0 : 16 << s.bits;
  Layout const mn = coalesce(tile.layout[0]);
  Layout const k = coalesce(tile.layout[1]);
  auto const contiguous = [](Layout const& mode) { return mode.strides[0] == 1 && mode.extents[0] > 1; };
  if (contiguous(mn) == contiguous(k)) refuse("wgmma_descriptor", "neither mn nor k is contiguous", tile);
  d.mn_major = contiguous(mn);
  if (d.mn_major && bits != 16)
    refuse("wgmma_descriptor", "only 16-bit elements may be contiguous along mn", tile, bits);
  Layout const& along = d.mn_major ? mn : k;   // the contiguous axis
  Layout const& across = d.mn_major ? k : mn;  // the axis of rows
  // Rows follow each other; groups of eight lie at one distance.
  if (across.strides[0] != row || across.extents[0] % 8 != 0)
    refuse("wgmma_descriptor", "eight rows, each as wide as the swizzle, must follow one another", tile, row);
  if (across.leaves() > 2 || (across.leaves() == 2 && across.extents[0] != 8))
    refuse("wgmma_descriptor", "groups of eight rows must lie at one distance", tile, row);
  std::int64_t const groups = across.leaves() == 2 ? across.strides[1] : 8 * row;
  // The contiguous axis: rows of the swizzle's width at one distance, or one such row or less.
  if (along.extents[0] % row != 0 && row % along.extents[0] != 0)
    refuse("wgmma_descriptor", "the contiguous axis must be cut into rows as wide as the swizzle", tile, row);
  if (along.leaves() > 2 || along.extents[0] != row)
    refuse("wgmma_descriptor", "the contiguous axis must be cut into rows as wide as the swizzle", tile, row);
  std::int64_t const blocks = along.leaves() == 2 ? along.strides[1] : 0;
  std::int64_t leading = blocks;
  std::int64_t stride = groups;
  if (d.mn_major && s.identity()) {
    leading = groups;
    stride = blocks;
  }
  if (!d.mn_major && !s.identity()) leading = 0;
  std::int64_t const bytes = bits / 8;
  d.leading_offset = static_cast<int>(leading * bytes);
  d.stride_offset = static_cast<int>(stride * bytes);
  return d;
}

/// An operand of wgmma in a shared tile `Tile` (tensor/shared_tile.hpp) of modes (mn, k[, stage]).
///
/// The descriptor of a part of the tile is the tile's, with the part's place, before the swizzle, added to
/// the start address: the hardware swizzles the sums.
template <class Tile> class WgmmaOperand {
 public:
  using Element = typename Tile::Element;
  static constexpr WgmmaDescriptor descriptor = wgmma_descriptor(Tile::layout, 8 * sizeof(Element));
  static constexpr bool mn_major = descriptor.mn_major;

  TEGULA_DEVICE explicit WgmmaOperand(Tile const& tile, [[maybe_unused]] Where where = Where::here())
      : low_(low | shared_address(tile.data, where) >> 4) {}

  /// The descriptor of the operand whose first element is (mn, k) of `stage`. Preconditions: K-major, mn is a
  /// multiple of 8 and k of 32 bytes; MN-major, mn is a multiple of the swizzle's width and k of 8.
  TEGULA_DEVICE std::uint64_t operator()(int mn, int k, int stage = 0) const {
    std::uint32_t const offset =
        static_cast<std::uint32_t>(offset_of<mn_mode>(mn) + offset_of<k_mode>(k)) * element_bytes;
    std::uint32_t const moved = low_ + (offset >> 4) + static_cast<std::uint32_t>(stage) * stage_pieces;
    return static_cast<std::uint64_t>(high) << 32 | moved;
  }

 private:
  static constexpr Layout mn_mode = Tile::layout.layout[0];
  static constexpr Layout k_mode = Tile::layout.layout[1];
  static constexpr std::uint32_t low = descriptor.low();
  static constexpr std::uint32_t high = descriptor.high();
  static constexpr std::uint32_t element_bytes = sizeof(Element);
  static constexpr std::uint32_t stage_pieces =
      Tile::layout.rank() == 3 ? static_cast<std::uint32_t>(Tile::layout.layout[2](1)) * element_bytes / 16
                               : 0;

  std::uint32_t low_;  // bits 0 to 31 of the descriptor of element (0, 0) of stage 0
};

}  // namespace tegula
