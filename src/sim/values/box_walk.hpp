#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "tegula/arch/tensor_map_description.hpp"

/// A box of a tensor as TMA walks it, in plain arithmetic: PTX ISA, "Tensors", "Tiled mode" and
/// "Swizzling modes".
namespace tegula::sim {

/// What the pieces' numbers of the 128-byte line at a shared address are XORed with, in place:
/// bits 4 and up, equal to as many bits of the address from bit 7 up as the swizzle permutes.
constexpr std::uint32_t swizzle_of_line(TmaSwizzle swizzle, std::uint32_t address) {
  std::uint32_t const pieces = (1u << static_cast<int>(swizzle)) - 1;
  return (address >> 7 & pieces) << 4;
}

/// Where what would lie at a shared address without a swizzle lies under it.
constexpr std::uint32_t swizzled(TmaSwizzle swizzle, std::uint32_t address) {
  return address ^ swizzle_of_line(swizzle, address);
}

/// The elements of a box along axis 0, which are contiguous in global memory and, but for the
/// swizzle, in shared memory.
struct TmaRow {
  int index = 0;                             ///< in shared order: axis 1 fastest
  std::array<std::int64_t, 5> coordinate{};  ///< of its first element in the tensor; may be outside
  int begin = 0;                             ///< of its bytes, the first that lies in the tensor,
  int end = 0;                               ///< and the end of those; equal where none does
  std::int64_t offset = 0;                   ///< bytes from the tensor's address to byte `begin`
};

/// Where the bytes of a row end that a store writes: it clips at pieces of 16 bytes, not at the
/// tensor's last element (measured on an H100).
constexpr int stored_end(TmaRow const& row) {
  return row.begin == row.end ? row.end : (row.end + 15) / 16 * 16;
}

/// How many rows .tile::gather4 and .tile::scatter4 name.
inline constexpr int kGatheredRows = 4;

/// The box at a coordinate, innermost axis first; or four rows of a matrix, each anywhere; or
/// pixels of an image, each a row of its channels.
class BoxWalk {
 public:
  BoxWalk(TensorMapDescription const& map, int const* coordinate) : map_(map) {
    std::copy(coordinate, coordinate + map.rank, first_.begin());
    for (int axis = 1; axis < map.rank; ++axis) rows_ *= box_extent(map, axis);
  }

  /// Of a map of a matrix and a box of one row: `coordinate` is a column and four rows.
  static BoxWalk gathered(TensorMapDescription const& map, int const* coordinate) {
    BoxWalk box(map, coordinate);
    box.gathered_ = true;
    std::copy(coordinate + 1, coordinate + 1 + kGatheredRows, box.rows_gathered_.begin());
    box.rows_ = kGatheredRows;
    return box;
  }

  /// Of a map of im2col: pixels from `coordinate` on, each read `offset` further along axes 1, 2
  /// and 3.
  static BoxWalk image(TensorMapDescription const& map, int const* coordinate,
                       std::uint16_t const* offset) {
    BoxWalk box(map, coordinate);
    for (std::size_t axis = 1; axis < box.rank() - 1; ++axis) box.offset_[axis] = offset[axis - 1];
    return box;
  }
  /// Whether its first pixel lies in the map's bounding box along an axis between 0 and the last.
  bool begins_in_bounding_box(int axis) const {
    auto const i = static_cast<std::size_t>(axis);
    return map_.lower_corner[i - 1] <= first_[i] && first_[i] < end_of_box(i);
  }

  TensorMapDescription const& map() const { return map_; }
  /// Of elements of whole bytes.
  int element_bytes() const { return bits(map_.dtype) / 8; }
  /// The element of a row that has this byte of it.
  int element_of(int byte) const { return byte * 8 / bits(map_.dtype); }
  int rows() const { return rows_; }
  int row_bytes() const { return bytes_of_elements(map_.box[0]); }
  /// Whether 16 elements take 16 bytes of shared memory, whatever their own are.
  bool unpacks() const { return is_unpacked(map_.dtype); }
  int shared_row_bytes() const { return unpacks() ? map_.box[0] : row_bytes(); }
  /// Bytes from a row to the next in shared memory: a swizzle's rows are as wide as its span, also
  /// where the box is narrower.
  int row_pitch() const { return std::max(shared_row_bytes(), span_bytes(map_.swizzle)); }
  /// Bytes of shared memory that the box takes up.
  int shared_bytes() const { return rows_ * row_pitch(); }
  /// Bytes of its elements, inside of the tensor or not: what a load completes at its mbarrier.
  int bytes() const { return rows_ * row_bytes(); }

  /// Calls f(TmaRow) with each row, in shared order.
  template <class F> void for_each_row(F&& f) const {
    TmaRow row;
    row.coordinate = first_;
    std::int64_t const begin = std::clamp<std::int64_t>(-first_[0], 0, map_.box[0]);
    std::int64_t const end =
        std::clamp<std::int64_t>(map_.extents[0] - first_[0], begin, map_.box[0]);
    std::array<int, 5> at{};
    for (row.index = 0; row.index < rows_; ++row.index) {
      if (gathered_) row.coordinate[1] = rows_gathered_[static_cast<std::size_t>(row.index)];
      for (std::size_t axis = 1; axis < rank(); ++axis) row.coordinate[axis] += offset_[axis];
      bool inside = true;
      row.offset = (first_[0] + begin) * bits(map_.dtype) / 8;
      for (std::size_t axis = 1; axis < rank(); ++axis) {
        inside = inside && row.coordinate[axis] >= 0 && row.coordinate[axis] < map_.extents[axis];
        row.offset += row.coordinate[axis] * map_.strides[axis - 1];
      }
      row.begin = bytes_of_elements(static_cast<int>(begin));
      row.end = inside ? bytes_of_elements(static_cast<int>(end)) : row.begin;
      f(static_cast<TmaRow const&>(row));
      if (gathered_) continue;
      for (std::size_t axis = 1; axis < rank(); ++axis) row.coordinate[axis] -= offset_[axis];
      if (map_.mode == TmaMode::im2col) {
        next_pixel(row.coordinate);
        continue;
      }
      for (std::size_t axis = 1; axis < rank(); ++axis) {
        row.coordinate[axis] += map_.element_strides[axis];
        if (++at[axis] < box_extent(map_, static_cast<int>(axis))) break;
        at[axis] = 0;
        row.coordinate[axis] = first_[axis];
      }
    }
  }

 private:
  std::size_t rank() const { return static_cast<std::size_t>(map_.rank); }
  /// Where the bounding box ends along an axis of an image.
  std::int64_t end_of_box(std::size_t axis) const {
    return map_.extents[axis] + map_.upper_corner[axis - 1];
  }
  void next_pixel(std::array<std::int64_t, 5>& pixel) const {
    for (std::size_t axis = 1; axis + 1 < rank(); ++axis) {
      pixel[axis] += map_.element_strides[axis];
      if (pixel[axis] < end_of_box(axis)) return;
      pixel[axis] = map_.lower_corner[axis - 1];
    }
    ++pixel[rank() - 1];
  }
  int bytes_of_elements(int count) const { return count * bits(map_.dtype) / 8; }

  TensorMapDescription map_;
  std::array<std::int64_t, 5> first_{};
  std::array<std::int64_t, 5> offset_{};  ///< of an image
  bool gathered_ = false;
  std::array<std::int64_t, kGatheredRows> rows_gathered_{};
  int rows_ = 1;
};

}  // namespace tegula::sim
