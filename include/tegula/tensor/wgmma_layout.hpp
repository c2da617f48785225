#pragma once

#include <cstdint>

#include "tegula/arch/wgmma_descriptor.hpp"
#include "tegula/layout/coalesce.hpp"
#include "tegula/layout/layout.hpp"
#include "tegula/layout/swizzled_layout.hpp"

/// The layouts of tiles in shared memory that wgmma reads, and the matrix descriptors that say so.
namespace tegula {

/// Whether a tile (mn, k[, stage]) is contiguous along mn; refused where it is along both
/// or neither.
constexpr bool mn_major(SwizzledLayout const& tile) {
  auto const contiguous = [&](int mode) {
    Layout const flat = coalesce(tile.layout[mode]);
    return flat.strides[0] == 1 && flat.extents[0] > 1;
  };
  if (contiguous(0) == contiguous(1))
    refuse("mn_major", "one of mn and k must be contiguous", tile);
  return contiguous(0);
}

/// The layout that a descriptor requires of a tile (mn, k) of elements of `bits` bits, in the terms
/// of that tile: rows as wide as its swizzle, eight to a group, at the distances of groups and rows
/// that it has.
constexpr SwizzledLayout wgmma_canonical_layout(SwizzledLayout const& tile, int bits) {
  bool const along_mn = mn_major(tile);
  Layout const along = coalesce(tile.layout[along_mn ? 0 : 1]);
  Layout const across = coalesce(tile.layout[along_mn ? 1 : 0]);
  std::int64_t const row = (std::int64_t{128} / bits) << tile.swizzle.bits;
  std::int64_t const blocks = along.size() / row > 0 ? along.size() / row : 1;
  std::int64_t const groups = across.size() / 8 > 0 ? across.size() / 8 : 1;
  Layout const canonical_along = layout(tuple(row, blocks), tuple(1, blocks > 1 ? along(row) : 0));
  Layout const canonical_across = layout(tuple(8, groups), tuple(row, groups > 1 ? across(8) : 0));
  int log_piece = 0;
  while ((bits << log_piece) < 128) ++log_piece;
  Swizzle const swizzle(tile.swizzle.bits, log_piece, 3);
  return {tile.swizzle.identity() ? Swizzle() : swizzle,
          along_mn ? make_layout(canonical_along, canonical_across)
                   : make_layout(canonical_across, canonical_along)};
}

/// The descriptor of a tile (mn, k[, stage]) of elements of `bits` bits. Refused where the tile has
/// not the canonical layout, which the refusal prints after the tile and the width. Along mn
/// elements of `least_mn_bits` or more may be contiguous: of wgmma those of 16 bits, of tcgen05.mma
/// those of 8, too.
constexpr WgmmaDescriptor wgmma_descriptor(SwizzledLayout const& tile, int bits,
                                           int least_mn_bits = 16) {
  Swizzle const& s = tile.swizzle;
  if (tile.rank() < 2 || tile.rank() > 3)
    refuse("wgmma_descriptor", "a tile has modes mn, k[, stage]", tile);
  if (bits != 8 && bits != 16 && bits != 32)
    refuse("wgmma_descriptor", "elements have 8, 16 or 32 bits", bits);
  if (tile.offset != 0 || s.bits > 3)
    refuse("wgmma_descriptor", "no offset, and a swizzle of 0 to 3 bits", tile);
  bool const along_mn = mn_major(tile);
  if (along_mn && (bits < least_mn_bits || bits > 16))
    refuse("wgmma_descriptor", "only 16-bit elements may be contiguous along mn", tile, bits);

  SwizzledLayout const canonical = wgmma_canonical_layout(tile, bits);
  Layout const mn = coalesce(tile.layout[0]);
  Layout const k = coalesce(tile.layout[1]);
  bool const is_canonical =
      s.identity() == canonical.swizzle.identity() && (s.identity() || s == canonical.swizzle) &&
      mn == coalesce(canonical.layout[0]) && k == coalesce(canonical.layout[1]);
  if (!is_canonical)
    refuse("wgmma_descriptor", "tile, bits, expected: not a layout wgmma reads", tile, bits,
           canonical);
  if (k.size() % (256 / bits) != 0)
    refuse("wgmma_descriptor", "k must be a multiple of 32 bytes", tile, bits);

  std::int64_t const bytes = bits / 8;
  auto const distance = [&](Layout const& mode) {
    return mode.leaves() == 2 ? mode.strides[1] * bytes : 0;
  };
  std::int64_t const blocks = distance(canonical.layout[along_mn ? 0 : 1]);
  std::int64_t const groups = distance(canonical.layout[along_mn ? 1 : 0]);
  std::int64_t const stage = tile.rank() == 3 ? tile.layout[2](1) * bytes : 0;
  // Swizzled rows repeat every eight; groups and stages start where the pattern does.
  std::int64_t const period = s.identity() ? 16 : 128 << s.bits;
  if (blocks % period != 0 || groups % period != 0 || stage % period != 0)
    refuse("wgmma_descriptor", "strides must be multiples of eight swizzled rows", tile, bits);
  if (blocks >= 1 << 18 || groups >= 1 << 18)
    refuse("wgmma_descriptor", "strides must be below 256 KiB", tile, bits);

  int const b = static_cast<int>(blocks);
  int const g = static_cast<int>(groups);
  if (s.identity()) return along_mn ? WgmmaDescriptor{0, g, b} : WgmmaDescriptor{0, b, g};
  return {16 << s.bits, along_mn ? b : 0, g};
}

}  // namespace tegula
