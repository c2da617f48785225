#pragma once

#include <cstdint>

#include "tegula/macros.hpp"

/// What a tcgen05.cp moves from shared to tensor memory: PTX ISA, "Data Movement Shape".
namespace tegula {

/// Rows of shared memory x bits of each, and to which of the four quarters of the lanes (each the
/// lanes of a warp) they go.
enum class TensorCopyShape : std::uint8_t {
  rows128_bits256,        ///< .128x256b: a row for each lane
  rows4_bits256,          ///< .4x256b: a lane of each quarter
  rows128_bits128,        ///< .128x128b: a row for each lane
  rows64_bits128_02_13,   ///< .64x128b.warpx2::02_13: rows 0 to 31 to quarters 0 and 2
  rows64_bits128_01_23,   ///< .64x128b.warpx2::01_23: rows 0 to 31 to quarters 0 and 1
  rows32_bits128_warpx4,  ///< .32x128b.warpx4: all rows to each quarter
};

/// What becomes of each 16 bytes of a row.
enum class TensorCopyFormat : std::uint8_t {
  same,         ///< they are copied as they are
  from_4_bits,  ///< .b8x16.b4x16_p64: the first 8 are 16 elements of e2m1, each becomes a byte
  from_6_bits,  ///< .b8x16.b6x16_p32: the first 12 are 16 elements of e2m3 or e3m2, likewise
};
/// Bytes of each 16 that are read.
TEGULA_HOST_DEVICE constexpr int bytes_read_of(TensorCopyFormat format) {
  return format == TensorCopyFormat::same ? 16 : format == TensorCopyFormat::from_4_bits ? 8 : 12;
}

TEGULA_HOST_DEVICE constexpr int rows_of(TensorCopyShape shape) {
  switch (shape) {
    case TensorCopyShape::rows128_bits256:
    case TensorCopyShape::rows128_bits128:
      return 128;
    case TensorCopyShape::rows4_bits256:
      return 4;
    case TensorCopyShape::rows32_bits128_warpx4:
      return 32;
    default:
      return 64;
  }
}
/// Columns of tensor memory, and of shared memory 32-bit words of a row.
TEGULA_HOST_DEVICE constexpr int columns_of(TensorCopyShape shape) {
  return shape == TensorCopyShape::rows128_bits256 || shape == TensorCopyShape::rows4_bits256 ? 8
                                                                                              : 4;
}
/// The row that a lane gets, lanes counted from the address's; -1: none.
TEGULA_HOST_DEVICE constexpr int row_of_lane(TensorCopyShape shape, int lane) {
  int const quarter = lane / 32, within = lane % 32;
  switch (shape) {
    case TensorCopyShape::rows128_bits256:
    case TensorCopyShape::rows128_bits128:
      return lane;
    case TensorCopyShape::rows4_bits256:
      return within == 0 ? quarter : -1;
    case TensorCopyShape::rows64_bits128_02_13:
      return quarter % 2 * 32 + within;
    case TensorCopyShape::rows64_bits128_01_23:
      return quarter / 2 * 32 + within;
    default:
      return within;
  }
}

}  // namespace tegula
