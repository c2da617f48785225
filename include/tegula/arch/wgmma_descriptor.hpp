#pragma once

#include <cstdint>

#include "tegula/macros.hpp"

/// Where wgmma finds an operand in shared memory: PTX ISA, "Asynchronous Warpgroup Level Matrix
/// Shared Memory Layout", "Strides" and "Matrix Descriptor Format".
namespace tegula {

/// What a matrix descriptor says; offsets and addresses are in bytes, multiples of 16 below 2^18.
///
/// The hardware sees pieces of 16 bytes along the contiguous axis, and rows across it. Eight rows
/// that follow one another make a group; a row is one piece wide, or as wide as the swizzle.
///
/// - K-major, no swizzle: groups of eight rows of mn are `stride_offset` apart, the two pieces
///   along k `leading_offset`.
/// - K-major, swizzled: groups are `stride_offset` apart; k stays inside a row, and
///   `leading_offset` is not read.
/// - MN-major, no swizzle: groups of eight rows of k are `leading_offset` apart, pieces along mn
///   `stride_offset`.
/// - MN-major, swizzled: groups of eight rows of k are `stride_offset` apart, rows along
///   mn `leading_offset`.
///
/// A swizzle exchanges the 16-byte pieces of each 128 bytes by the number of these 128 bytes,
/// modulo its number of pieces, in addresses as a whole: a step along the operand may be added to
/// the start address.
struct WgmmaDescriptor {
  int swizzle_bytes = 0;  ///< the width of a swizzled row: 32, 64 or 128; 0 without a swizzle
  int leading_offset = 0;
  int stride_offset = 0;

  /// Bits 32 to 63: stride offset / 16 from bit 32, base offset 0 (bits 49 to 51), swizzle mode
  /// from bit 62.
  TEGULA_HOST_DEVICE constexpr std::uint32_t high() const {
    std::uint32_t const mode = swizzle_bytes == 0     ? 0
                               : swizzle_bytes == 128 ? 1
                               : swizzle_bytes == 64  ? 2
                                                      : 3;
    return static_cast<std::uint32_t>(stride_offset >> 4) | mode << 30;
  }
  /// Bits 0 to 31 with a start address of 0: leading offset / 16 from bit 16. The start address
  /// / 16 is bits 0 to 13.
  TEGULA_HOST_DEVICE constexpr std::uint32_t low() const {
    return static_cast<std::uint32_t>(leading_offset >> 4) << 16;
  }

  friend constexpr bool operator==(WgmmaDescriptor const&, WgmmaDescriptor const&) = default;
};

/// Bits of a descriptor that must be zero: between the fields, and the base offset, which only
/// patterns that do not start at a multiple of 1024 bytes need.
inline constexpr std::uint64_t kWgmmaDescriptorZeros = ~0xc000'3fff'3fff'3fffull;

/// The fields of a descriptor.
constexpr WgmmaDescriptor decode_wgmma_descriptor(std::uint64_t bits) {
  constexpr int kSwizzles[4] = {0, 128, 64, 32};
  return {kSwizzles[bits >> 62], static_cast<int>(bits >> 16 & 0x3fff) << 4,
          static_cast<int>(bits >> 32 & 0x3fff) << 4};
}
constexpr std::uint32_t wgmma_start_address(std::uint64_t bits) {
  return static_cast<std::uint32_t>(bits & 0x3fff) << 4;
}

/// Where 16 bytes of an operand lie, in bytes from its start address and before the swizzle.
/// K-major: elements k = piece * 16 bytes ... of row mn = `row`; MN-major: elements mn = piece * 16
/// bytes ... of row k = `row`.
constexpr std::uint32_t wgmma_piece_offset(WgmmaDescriptor const& d, bool mn_major, int row,
                                           int piece) {
  bool const swizzled = d.swizzle_bytes != 0;
  int const width = swizzled ? d.swizzle_bytes : 16;
  int const pieces = width / 16;
  int const group = mn_major && !swizzled ? d.leading_offset : d.stride_offset;
  int const block = mn_major && !swizzled ? d.stride_offset : d.leading_offset;
  return static_cast<std::uint32_t>(row % 8 * width + row / 8 * group + piece % pieces * 16 +
                                    piece / pieces * block);
}

/// The address of what the descriptor's operand has at `address` before the swizzle.
constexpr std::uint32_t wgmma_swizzle(WgmmaDescriptor const& d, std::uint32_t address) {
  std::uint32_t const pieces =
      d.swizzle_bytes == 0 ? 1 : static_cast<std::uint32_t>(d.swizzle_bytes / 16);
  return address ^ (address >> 3 & (pieces - 1) << 4);
}

}  // namespace tegula
