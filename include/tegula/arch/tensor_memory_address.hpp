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
/// its own: warp w of a warpgroup lanes 32 w to 32 w + 31.) lanes16_bits32_x2 is two of 16 lanes x
/// 32 bits: one of the warp's lower 16 threads, one of the upper ones.
enum class TensorShape : std::uint8_t {
  lanes32_bits32,
  lanes16_bits64,
  lanes16_bits128,
  lanes16_bits256,
  lanes16_bits32_x2
};

TEGULA_HOST_DEVICE constexpr int lanes_of(TensorShape shape) {
  return shape == TensorShape::lanes32_bits32 ? 32 : 16;
}
/// Columns of one repetition; of lanes16_bits32_x2 each of the two has them.
TEGULA_HOST_DEVICE constexpr int columns_of(TensorShape shape) {
  switch (shape) {
    case TensorShape::lanes16_bits64:
      return 2;
    case TensorShape::lanes16_bits128:
      return 4;
    case TensorShape::lanes16_bits256:
      return 8;
    default:
      return 1;
  }
}
/// Registers that a thread has of one repetition.
TEGULA_HOST_DEVICE constexpr int registers_of(TensorShape shape) {
  return shape == TensorShape::lanes16_bits32_x2 ? 1 : lanes_of(shape) * columns_of(shape) / 32;
}

/// What a register of a tcgen05.ld or st holds.
enum class TensorPacking : std::uint8_t {
  none,    ///< the 32 bits of a column
  halves,  ///< the low 16 bits of two columns side by side (.pack::16b, .unpack::16b)
};

/// One tcgen05.ld or st.
struct TensorMove {
  TensorShape shape;
  int repeat = 1;  ///< repetitions side by side: a power of two, at most 128 registers
  TensorPacking packing = TensorPacking::none;
  int split = 0;  ///< columns from the lower threads' to the upper ones', of lanes16_bits32_x2
};

TEGULA_HOST_DEVICE constexpr int registers_of(TensorMove const& move) {
  return move.repeat * registers_of(move.shape);
}
/// Columns side by side that it moves; of lanes16_bits32_x2 each of the two does.
TEGULA_HOST_DEVICE constexpr int columns_of(TensorMove const& move) {
  return move.repeat * columns_of(move.shape) * (move.packing == TensorPacking::halves ? 2 : 1);
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
    case TensorShape::lanes16_bits32_x2:
      return {thread % 16, r};
    case TensorShape::lanes16_bits64:
      return {thread / 4 + 8 * (thread % 2), 2 * r + thread / 2 % 2};
    case TensorShape::lanes16_bits128:
      return {thread / 4 + 8 * (r % 2), 4 * (r / 2) + thread % 4};
    default:  // as the accumulators of an mma.sync of 16 rows: two neighbours, then eight rows on
      return {thread / 4 + 8 * (r / 2 % 2), 8 * (r / 4) + 2 * (thread % 4) + r % 2};
  }
}
/// Of halves, where the lower one lies; the upper one lies a column further on.
constexpr TensorPlace tensor_place(TensorMove const& move, int thread, int r) {
  TensorPlace at = tensor_place(move.shape, thread, r);
  if (move.packing == TensorPacking::halves) at.column *= 2;
  if (move.shape == TensorShape::lanes16_bits32_x2 && thread >= 16) at.column += move.split;
  return at;
}

}  // namespace tegula
