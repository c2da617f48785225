#pragma once

#include <cstdint>

/// What the parts of the tensor-core arithmetic hand each other: decoded operand tiles, and the
/// functions that reduce them. Internal.
namespace tegula::sim::detail {

inline constexpr int kRows = 16;
inline constexpr int kColumns = 8;
inline constexpr int kMostK = 16;

/// Exponent of a zero operand: below every alignment, even when added to the greatest exponent.
inline constexpr std::int32_t kZeroExponent = -4096;

/// No sum is aligned to an exponent below this, so that terms are cut at 2^-158 at the finest (seen
/// on an H100).
inline constexpr std::int32_t kLeastAlignment = -133;

/// One fused dot-add over `k` products. Values are sign-magnitude with an unbiased exponent; a
/// magnitude holds its fraction bits scaled so that the product a * b, and c, are in units of
/// 2^(exponent - fraction_bits).
struct DotTile {
  alignas(64) std::int32_t a_magnitude[kRows][kMostK];
  alignas(64) std::int32_t a_exponent[kRows][kMostK];
  alignas(64) std::int32_t a_sign[kRows][kMostK];  // 0 or -1
  alignas(64) std::int32_t b_magnitude[kMostK][kColumns];
  alignas(64) std::int32_t b_exponent[kMostK][kColumns];
  alignas(64) std::int32_t b_sign[kMostK][kColumns];
  alignas(64) std::int32_t c_magnitude[kRows][kColumns];
  alignas(64) std::int32_t c_exponent[kRows][kColumns];
  alignas(64) std::int32_t c_sign[kRows][kColumns];
  alignas(64) std::uint32_t d[kRows][kColumns];  // binary32 results
  bool exceptional[kRows];  // a result of the row is subnormal or overflows: d is not valid there
};

/// How the exact sum becomes the binary32 in DotTile::d.
enum class SumRounding {
  kTowardZero,  ///< binary32 accumulators
  kToOdd,       ///< enough for a later, correct rounding to binary16
};

/// Fills d and exceptional for k from first_k to first_k + k.
using ReduceTile = void (*)(DotTile& tile, int first_k, int k, int fraction_bits,
                            SumRounding rounding);

void reduce_tile_portable(DotTile& tile, int first_k, int k, int fraction_bits,
                          SumRounding rounding);
void reduce_tile_avx2(DotTile& tile, int first_k, int k, int fraction_bits, SumRounding rounding);

}  // namespace tegula::sim::detail
