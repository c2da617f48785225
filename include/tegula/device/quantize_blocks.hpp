#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tegula/device/error.hpp"
#include "tegula/kernel/block_scale.hpp"
#include "tegula/numeric/dtype.hpp"
#include "tegula/numeric/rounded_bits.hpp"

/// Quantisation of blocks on the host: mxf8, mxf6, mxf4 and nvf4 (docs/low_precision.md).
namespace tegula {

/// A tensor (rows, k) as gemm_sm100 reads it.
struct QuantizedBlocks {
  std::vector<std::uint8_t> elements;  ///< (rows, ld), packed, the first in the lowest bits
  std::vector<std::uint8_t> scales;    ///< in pieces (kernel/block_scale.hpp), zeros beyond k
};

namespace detail {
inline float largest_element(DType type) {
  switch (type) {
    case DType::e4m3:
      return 448.0f;
    case DType::e5m2:
      return 57344.0f;
    case DType::e2m3:
      return 7.5f;
    case DType::e3m2:
      return 28.0f;
    case DType::e2m1:
      return 6.0f;
    default:  // of no format of blocks
      return 0.0f;
  }
}
}  // namespace detail

/// Row-major `values` (rows, k) as elements of `type`, e4m3, e5m2, e2m3, e3m2 or e2m1 with
/// kMxScale, or e2m1 with kNvScale, whose rows are `ld` elements apart (of whole bytes). A block's
/// scale is its largest magnitude over the type's largest: ue8m0 rounded up, ue4m3 to nearest.
/// Elements are the quotients in f32, rounded to nearest even and saturated. A block that holds an
/// infinity or a NaN has a scale of NaN; one whose scale is zero, which ue4m3 has below 2^-10, is
/// zeros. Throws argument_error where there is no such format, for a null pointer, and for extents
/// that are not at least 1, or are more than 2^30, or 2^40 multiplied with each other.
inline QuantizedBlocks quantize_blocks(DType type, BlockScale how, std::int64_t rows,
                                       std::int64_t k, std::int64_t ld, float const* values) {
  bool const known = (how == kMxScale && detail::largest_element(type) > 0) ||
                     (how == kNvScale && type == DType::e2m1);
  if (!known)
    throw argument_error("quantize_blocks: the elements are " + std::string(to_string(type)) +
                         " with a scale of " + to_string(how.type) + " for each " +
                         std::to_string(how.block) +
                         "; they must be e4m3, e5m2, e2m3, e3m2 or e2m1 with ue8m0 for each 32, or "
                         "e2m1 with ue4m3 for each 16.");
  if (values == nullptr)
    throw argument_error("quantize_blocks: values is a null pointer; it must be rows * k floats.");
  constexpr std::int64_t most = std::int64_t{1} << 30;
  if (rows > most || ld > most || rows > (most << 10) / std::max<std::int64_t>(ld, 1))
    throw argument_error("quantize_blocks: rows " + std::to_string(rows) + " and ld " +
                         std::to_string(ld) +
                         " must be at most 2^30 each, and 2^40 multiplied with each other.");
  if (rows < 1 || k < 1 || ld < k || ld % packed(type) != 0)
    throw argument_error("quantize_blocks: rows " + std::to_string(rows) + ", k " +
                         std::to_string(k) + " and ld " + std::to_string(ld) +
                         " must be at least 1, ld at least k and, of " + to_string(type) +
                         ", a multiple of " + std::to_string(packed(type)) + ".");
  int const pieces_k = scale_pieces_k(static_cast<int>(k), how.block);
  QuantizedBlocks result;
  result.elements.resize(static_cast<std::size_t>(rows * ld * bits(type) / 8));
  result.scales.resize(static_cast<std::size_t>(block_scale_bytes(rows, k, how.block)));
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t first = 0; first < k; first += how.block) {
      float const* const block = values + row * k + first;
      std::int64_t const count = std::min<std::int64_t>(how.block, k - first);
      float largest = 0;
      for (std::int64_t i = 0; i < count; ++i)
        largest = std::isfinite(block[i]) ? std::max(largest, std::abs(block[i])) : std::nanf("");
      // std::max keeps a NaN that is its first argument.
      float const wanted = largest / detail::largest_element(type);
      bool const of_powers = how.type == DType::ue8m0;
      std::uint8_t const code =
          of_powers ? to_float_ue8m0(wanted).bits : to_float_ue4m3(wanted).bits;
      float const scale = of_powers ? to_float(float_ue8m0{code}) : to_float(float_ue4m3{code});
      result
          .scales[static_cast<std::size_t>(block_scale_offset(row, first / how.block, pieces_k))] =
          code;
      for (std::int64_t i = 0; i < count; ++i) {
        std::int64_t const bit = (row * ld + first + i) * bits(type);
        unsigned const element = scale == 0 ? 0 : rounded_bits(type, block[i] / scale);
        for (std::int64_t byte = bit / 8; byte * 8 < bit + bits(type); ++byte)
          result.elements[static_cast<std::size_t>(byte)] |= static_cast<std::uint8_t>(
              byte == bit / 8 ? element << bit % 8 : element >> (8 - bit % 8));
      }
    }
  }
  return result;
}

}  // namespace tegula
