#pragma once

#include <cstdint>

#include "tegula/arch/tensor_map.hpp"
#include "tegula/arch/tensor_map_description.hpp"
#include "tegula/layout/coalesce.hpp"
#include "tegula/layout/swizzled_layout.hpp"
#include "tegula/tensor/shared_tile.hpp"

/// Which boxes of a tensor fill a tile in shared memory.
namespace tegula {

/// The TMA boxes whose loads, one beside the other along the contiguous axis, lay out a stage of a
/// shared tile.
struct TmaBox {
  int contiguous_extent;     ///< elements of a box along the contiguous axis: a tensor map's box[0]
  int strided_extent;        ///< and along the other: its box[1]
  TmaSwizzle swizzle;        ///< the tensor map's
  int count;                 ///< boxes along the contiguous axis that make up a stage
  std::int64_t distance;     ///< bytes from one to the next in shared memory
  std::int64_t stage_bytes;  ///< that all of them bring: what a stage's mbarrier expects

  friend constexpr bool operator==(TmaBox const&, TmaBox const&) = default;
};

/// The boxes of a tile (mn, k[, stage]) of elements of `bits` bits that is contiguous along mode
/// `contiguous` (0: mn, 1: k), such as swizzled_operand makes. Refused where TMA cannot lay out the
/// tile: a row of a box must be a multiple of 16 bytes, without a gap to the next, and, swizzled,
/// as wide as what its swizzle permutes; at most 256 elements along each axis; and boxes and stages
/// must begin where the swizzle's pattern does.
constexpr TmaBox tma_box(SwizzledLayout const& tile, int bits, int contiguous) {
  Swizzle const& s = tile.swizzle;
  if (tile.rank() < 2 || tile.rank() > 3)
    refuse("tma_box", "a tile has modes mn, k[, stage]", tile);
  if (contiguous != 0 && contiguous != 1)
    refuse("tma_box", "the contiguous mode is 0 or 1", contiguous);
  if (bits != 8 && bits != 16 && bits != 32 && bits != 64)
    refuse("tma_box", "elements have 8, 16, 32 or 64 bits", bits);
  int log_piece = 0;  // of the elements in 16 bytes
  while ((bits << log_piece) < 128) ++log_piece;
  if (tile.offset != 0 || s.bits > 3 || (!s.identity() && s != Swizzle(s.bits, log_piece, 3)))
    refuse("tma_box", "TMA swizzles 16-byte pieces within 32, 64 or 128 bytes by the 128-byte line",
           tile, bits);

  Layout const along = coalesce(tile.layout[contiguous]);
  Layout const across = coalesce(tile.layout[1 - contiguous]);
  std::int64_t const bytes = bits / 8;
  std::int64_t const row = along.extents[0];
  if (along.leaves() > 2 || along.strides[0] != 1 || across.leaves() != 1)
    refuse("tma_box", "each axis must be one run, the contiguous one blocks of one distance", tile);
  if (across.size() > 1 && across.strides[0] != row)
    refuse("tma_box", "the rows of a block must follow each other without a gap", tile);
  if (row * bytes % 16 != 0)
    refuse("tma_box", "a block's row must be a multiple of 16 bytes", tile, bits);
  if (!s.identity() && row * bytes != 16 << s.bits)
    refuse("tma_box", "a block's row must be as wide as what the swizzle permutes", tile, bits);
  if (row > 256 || across.size() > 256)
    refuse("tma_box", "a box has at most 256 elements along each axis", tile);

  std::int64_t const blocks = along.leaves() == 2 ? along.extents[1] : 1;
  std::int64_t const distance = along.leaves() == 2 ? along.strides[1] * bytes : 0;
  std::int64_t const stage =
      tile.rank() == 3 && tile.layout[2].size() > 1 ? tile.layout[2](1) * bytes : 0;
  std::int64_t const period = s.identity() ? 128 : 128 << s.bits;
  if (distance % period != 0 || stage % period != 0)
    refuse("tma_box", "blocks and stages must begin at multiples of the swizzle's period", tile,
           bits, period);
  return {static_cast<int>(row),
          static_cast<int>(across.size()),
          swizzle_of_span(16 << s.bits),
          static_cast<int>(blocks),
          distance,
          blocks * row * across.size() * bytes};
}

/// How a tile (mn, k[, stage]) comes from TMA: as boxes of box_mn x box_k, boxes_mn along mn and
/// boxes_k along k, of which each of `peers` CTAs fetches every peers-th along mn for all. What
/// tensor maps, mbarriers and copies are made from.
struct TmaBoxes {
  int box_mn = 0, box_k = 0;
  int boxes_mn = 1, boxes_k = 1;
  int peers = 1;
  int contiguous = 1;  ///< the tensor map's axis 0: 0 for mn, 1 for k
  TmaSwizzle swizzle{};
  int bytes = 0;  ///< of a stage, whoever fetches it: what its mbarrier expects

  friend constexpr bool operator==(TmaBoxes const&, TmaBoxes const&) = default;

  /// The extents of a tensor map's box, its contiguous axis first.
  constexpr int box(int axis) const { return (axis == 0) == (contiguous == 0) ? box_mn : box_k; }
};

/// The boxes of an operand's tile, shared by `peers` CTAs that multicast. Refused where TMA cannot
/// lay out the tile (tma_box), or where its boxes cannot be shared: MN-major, 128 bytes of mn are
/// a box. K-major, a peer's rows may begin anywhere in the swizzle's pattern, which is one of
/// addresses.
constexpr TmaBoxes tma_boxes(OperandTile const& tile, int peers = 1) {
  if (peers < 1) refuse("tma_boxes", "there is at least one CTA that fetches", peers);
  TmaBox const box = tma_box(swizzled_operand(tile), tile.bits, tile.contiguous);
  TmaBoxes result{.peers = peers,
                  .contiguous = tile.contiguous,
                  .swizzle = box.swizzle,
                  .bytes = static_cast<int>(box.stage_bytes)};
  if (tile.contiguous == 0) {
    result.box_mn = box.contiguous_extent, result.box_k = box.strided_extent;
    result.boxes_mn = box.count;
  } else {
    result.box_mn = box.strided_extent / peers, result.box_k = box.contiguous_extent;
    result.boxes_mn = peers, result.boxes_k = box.count;
    if (box.strided_extent % peers != 0)
      refuse("tma_boxes", "each peer fetches as many rows", box.strided_extent, peers);
  }
  if (result.boxes_mn % peers != 0)
    refuse("tma_boxes", "the peers must divide the tile's boxes along mn", result.boxes_mn, peers);
  return result;
}

/// The boxes of the tile's first `columns` along k, which are one box: of a tile that is cut short,
/// and swizzled as the whole one is.
constexpr TmaBoxes narrowed(TmaBoxes boxes, int columns) {
  if (boxes.boxes_mn * boxes.boxes_k != 1 || columns < 1 || columns > boxes.box_k)
    refuse("narrowed", "only a tile of one box is cut short", columns, boxes.box_k);
  boxes.bytes = boxes.bytes / boxes.box_k * columns;
  boxes.box_k = columns;
  return boxes;
}

/// The rows along mn that a tile's boxes bring.
constexpr int rows_of_tile(TmaBoxes const& boxes) { return boxes.box_mn * boxes.boxes_mn; }
/// Whether a tile of these boxes may be cut short along mn: its rows are contiguous, and each peer
/// fetches one box of them.
constexpr bool can_be_cut(TmaBoxes const& boxes) {
  return boxes.contiguous == 1 && boxes.boxes_mn == boxes.peers;
}
/// The boxes of the tile's first `rows` along mn, of a tile at the end of a tensor: each peer's is
/// as high, so that there may be some rows more.
constexpr TmaBoxes first_rows(TmaBoxes boxes, int rows) {
  if (!can_be_cut(boxes) || rows < 1 || rows > rows_of_tile(boxes))
    refuse("first_rows", "only a tile of one box for each peer along mn is cut short", rows,
           boxes.box_mn);
  int const box = (rows + boxes.peers - 1) / boxes.peers;
  boxes.bytes = boxes.bytes / boxes.box_mn * box;
  boxes.box_mn = box;
  return boxes;
}

/// `batches` matrices (mn, k) in global memory of which TMA moves boxes. Rows of the contiguous
/// axis are `ld` elements apart, matrices `batch_stride`.
struct TmaMatrices {
  DType dtype{};
  void const* address = nullptr;
  std::int64_t mn = 0, k = 0, batches = 1;
  std::int64_t ld = 0, batch_stride = 0;
};

/// The tensor map of matrices for these boxes: its axes are the contiguous one, the other, and the
/// batch. The stride of an axis of extent 1 is never taken: TMA gets one that it accepts.
constexpr TensorMapDescription describe(TmaMatrices const& x, TmaBoxes const& boxes) {
  bool const along_mn = boxes.contiguous == 0;
  auto const bytes = [&](std::int64_t extent, std::int64_t stride) {
    return extent == 1 ? std::int64_t{16} : stride * bits(x.dtype) / 8;
  };
  return {.dtype = x.dtype,
          .rank = 3,
          .address = x.address,
          .extents = {along_mn ? x.mn : x.k, along_mn ? x.k : x.mn, x.batches},
          .strides = {bytes(along_mn ? x.k : x.mn, x.ld), bytes(x.batches, x.batch_stride)},
          .box = {boxes.box(0), boxes.box(1), 1},
          .swizzle = boxes.swizzle};
}

/// The tensor map of one matrix whose rows are gathered or scattered four at a time
/// (TmaFourRows): of rank 2, a box is one row of `boxes`.
constexpr TensorMapDescription describe_rows(TmaMatrices const& x, TmaBoxes const& boxes) {
  if (boxes.contiguous != 1 || x.batches != 1)
    refuse("describe_rows", "rows are gathered of one matrix that is contiguous along k",
           boxes.contiguous, x.batches);
  TensorMapDescription result = describe(x, boxes);
  result.rank = 2;
  result.box = {boxes.box_k, 1};
  return result;
}

}  // namespace tegula
