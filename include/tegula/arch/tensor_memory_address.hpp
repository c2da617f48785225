#pragma once

#include <cstdint>

#include "tegula/macros.hpp"

/// Tensor memory: what its addresses mean, and the shapes in which warps move it. PTX ISA, "Tensor
/// Memory", "Data Movement Shape".
namespace tegula {

/// A CTA's tensor memory: lanes (rows) of columns of 32 bits.
inline constexpr int kTensorLanes = 128;
inline constexpr int kTensorColumns = 512;
/// The fewest columns that can be allocated; their number is a power of two.
inline constexpr int kLeastTensorColumns = 32;

/// An address in tensor memory: the column in bits 0 to 15, the lane in bits 16 to 31.
using TensorAddr = std::uint32_t;

TEGULA_HOST_DEVICE constexpr TensorAddr tensor_address(int lane, int column) {
  return static_cast<TensorAddr>(lane) << 16 | static_cast<TensorAddr>(column);
}
TEGULA_HOST_DEVICE constexpr int tensor_lane(TensorAddr address) {
  return static_cast<int>(address >> 16);
}
TEGULA_HOST_DEVICE constexpr int tensor_column(TensorAddr address) {
  return static_cast<int>(address & 0xffff);
}

/// What one repetition of a tcgen05.ld or st moves: lanes x bits of each. (A warp has 32 lanes of
/// its own: warp w of a warpgroup lanes 32 w to 32 w + 31.)
enum class TensorShape : std::uint8_t {
  lanes32_bits32,
  lanes16_bits64,
  lanes16_bits128,
  lanes16_bits256
};

TEGULA_HOST_DEVICE constexpr int lanes_of(TensorShape shape) {
  return shape == TensorShape::lanes32_bits32 ? 32 : 16;
}
/// Columns of one repetition, ...
TEGULA_HOST_DEVICE constexpr int columns_of(TensorShape shape) {
  return shape == TensorShape::lanes32_bits32    ? 1
         : shape == TensorShape::lanes16_bits64  ? 2
         : shape == TensorShape::lanes16_bits128 ? 4
                                                 : 8;
}
/// ... and registers that a thread has of it.
TEGULA_HOST_DEVICE constexpr int registers_of(TensorShape shape) {
  return lanes_of(shape) * columns_of(shape) / 32;
}

/// Where register r of a thread lies, counted from the address of the instruction.
struct TensorPlace {
  int lane;
  int column;
};
/// PTX ISA, "Matrix fragments for shape .32x32b", ".16x64b", ".16x128b", ".16x256b".
constexpr TensorPlace tensor_place(TensorShape shape, int thread, int r) {
  switch (shape) {
    case TensorShape::lanes32_bits32:
      return {thread, r};
    case TensorShape::lanes16_bits64:
      return {thread / 4 + 8 * (thread % 2), 2 * r + thread / 2 % 2};
    case TensorShape::lanes16_bits128:
      return {thread / 4 + 8 * (r % 2), 4 * (r / 2) + thread % 4};
    default:  // as the accumulators of an mma.sync of 16 rows: two neighbours, then eight rows on
      return {thread / 4 + 8 * (r / 2 % 2), 8 * (r / 4) + 2 * (thread % 4) + r % 2};
  }
}

}  // namespace tegula
