#pragma once

#include <cstdint>

#include "tegula/macros.hpp"
#include "tegula/numeric/dtype.hpp"

/// Scales for blocks of a row's elements, and where they lie in global memory.
namespace tegula {

/// A scale of `type` for each `block` elements along k. block 0: there are none.
struct BlockScale {
  DType type = DType::ue8m0;
  int block = 0;

  friend constexpr bool operator==(BlockScale const&, BlockScale const&) = default;
};

/// OCP microscaling formats (MXFP8, MXFP4), and NVIDIA's NVFP4.
inline constexpr BlockScale kMxScale = {DType::ue8m0, 32};
inline constexpr BlockScale kNvScale = {DType::ue4m3, 16};

/// Elements of less than a byte lie packed in global memory: so many of them in the fewest whole
/// bytes.
constexpr int packed(DType type) { return bits(type) == 4 ? 2 : bits(type) == 6 ? 4 : 1; }

/// Of operands with block scales whether both are e2m1: kinds mxf4 and mxf4nvf4 read pairs of them,
/// a byte each. Kind mxf8f6f4 reads elements of 6 and 4 bits unpacked, as TMA brings them.
constexpr bool are_pairs(DType a, DType b) { return a == DType::e2m1 && b == DType::e2m1; }

/// Scales lie in pieces of 128 rows x 4 scales along k, 512 bytes: (row, scale) at
/// ((32,4),4):((16,4),1), so that each of the 32 runs of 16 bytes is a lane's four columns of
/// tensor memory. It is the order in which cuBLAS and CUTLASS have them.
inline constexpr int kScalePieceRows = 128, kScalePieceScales = 4, kScalePieceBytes = 512;

/// Pieces along k, and along the rows. What lies in a piece beyond a tensor's rows or its scales is
/// read, and must not be NaN; zeros will do.
TEGULA_HOST_DEVICE constexpr int scale_pieces_k(int k, int block) {
  return (k + kScalePieceScales * block - 1) / (kScalePieceScales * block);
}
TEGULA_HOST_DEVICE constexpr int scale_pieces_rows(int rows) {
  return (rows + kScalePieceRows - 1) / kScalePieceRows;
}
/// Bytes of the scales of a tensor (rows, k): pieces along k follow one another, then come those of
/// the next 128 rows.
constexpr std::int64_t block_scale_bytes(std::int64_t rows, std::int64_t k, int block) {
  return std::int64_t{kScalePieceBytes} * scale_pieces_rows(static_cast<int>(rows)) *
         scale_pieces_k(static_cast<int>(k), block);
}
/// Where the scale of the block `index` of a row lies, in bytes.
constexpr std::int64_t block_scale_offset(std::int64_t row, std::int64_t index, int pieces_k) {
  std::int64_t const piece = row / kScalePieceRows * pieces_k + index / kScalePieceScales;
  std::int64_t const within = row % kScalePieceRows;
  return piece * kScalePieceBytes + within % 32 * 16 + within / 32 * 4 + index % kScalePieceScales;
}

}  // namespace tegula
