#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "tegula/arch/tensor_map.hpp"
#include "tegula/numeric/dtype.hpp"

/// What a tensor map says, as a plain value that can be printed, checked and encoded
/// (device/tensor_map.hpp).
namespace tegula {

/// How an instruction finds its box in the tensor.
enum class TmaMode : std::uint8_t {
  tiled,  ///< at a coordinate along each axis; rows by .tile::gather4 and .tile::scatter4, too
  /// as a convolution reads an image, of axes C, W[, H[, D]] and N (arch/tma_im2col.hpp)
  im2col,
};

/// A tensor in global memory and the box of it that one TMA instruction moves: the arguments of the
/// CUDA driver's cuTensorMapEncodeTiled, or cuTensorMapEncodeIm2col, by name. Axis 0 is the
/// innermost, whose elements are contiguous; of each array the first `rank` entries count (of
/// `strides` the first rank - 1).
///
/// Elements of e2m1, e2m3 and e3m2 lie packed in global memory, and are unpacked as they are loaded
/// (sm_100a, CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B and 16U6_ALIGN16B): 16 of them take 16 bytes of
/// shared memory, of which they are the first 8 or 12.
struct TensorMapDescription {
  DType dtype = DType::bf16;
  int rank = 0;                              ///< 1 to 5
  void const* address = nullptr;             ///< in the machine's global memory
  std::array<std::int64_t, 5> extents = {};  ///< elements along each axis
  /// bytes from one index to the next along axes 1, 2, ...
  std::array<std::int64_t, 4> strides = {};
  /// elements of the tensor that a box spans along each axis; of im2col box[0] are the channels of
  /// a pixel (channelsPerPixel), box[1] the pixels (pixelsPerColumn), and the others are not read
  std::array<int, 5> box = {};
  /// Along each axis a box holds every n-th element of what it spans, the first included; that of
  /// axis 0 is ignored, as the driver ignores it. Of im2col: the steps from pixel to pixel along
  /// axes 1, 2 and 3, a convolution's strides.
  std::array<int, 5> element_strides = {1, 1, 1, 1, 1};
  TmaSwizzle swizzle = TmaSwizzle::none;
  TmaL2Promotion l2_promotion = TmaL2Promotion::b128;
  TmaFill fill = TmaFill::zeros;
  TmaMode mode = TmaMode::tiled;
  /// Of im2col, for axes 1, 2 and 3: where the bounding box of the pixels begins, from the tensor's
  /// first element, and ends, from behind its last. A filter of S taps, d apart, over an image that
  /// is padded by p on either side: -p and p - (S - 1) d.
  std::array<int, 3> lower_corner = {}, upper_corner = {};

  friend bool operator==(TensorMapDescription const&, TensorMapDescription const&) = default;
};

/// Elements along an axis that a box holds: what it spans over the element stride, rounded up.
constexpr int box_extent(TensorMapDescription const& map, int axis) {
  if (map.mode == TmaMode::im2col) return axis < 2 ? map.box[static_cast<std::size_t>(axis)] : 1;
  int const step = axis == 0 ? 1 : map.element_strides[static_cast<std::size_t>(axis)];
  return (map.box[static_cast<std::size_t>(axis)] + step - 1) / step;
}

/// Whether elements are unpacked as they are loaded.
constexpr bool is_unpacked(DType type) { return bits(type) < 8; }

/// Bytes of a box's elements, which is what a load of it counts at its mbarrier: in shared memory
/// it has as many, but for those that are unpacked.
constexpr int box_bytes(TensorMapDescription const& map) {
  int bytes = bits(map.dtype);
  for (int axis = 0; axis < map.rank; ++axis) bytes *= box_extent(map, axis);
  return bytes / 8;
}

}  // namespace tegula
