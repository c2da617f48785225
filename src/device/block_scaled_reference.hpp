#pragma once

/// What the reference of a GEMM needs of operands with block scales.

#include <cstdint>
#include <vector>

#include "tegula/device/arguments.hpp"

namespace tegula::reference {

/// Rows of an operand with block scales, each of k elements.
struct BlockScaledRows {
  std::int64_t k = 0;
  std::vector<double> value;  ///< what an element stands for: itself times its scale
  /// Under which a tensor core aligns it: its own plus its scale's, of `pairs` its scale's alone. A
  /// subnormal number counts as the least normal one; of zero the exponent is very small.
  std::vector<int> exponent;
};

/// `rows` rows from `first` on. `data`: host memory, rows `ld` elements apart; `scales` in pieces
/// (kernel/block_scale.hpp). `pairs`: both operands are e2m1 (are_pairs).
BlockScaledRows block_scaled_rows(void const* data, DType type, std::int64_t ld, void const* scales,
                                  BlockScale const& how, bool pairs, std::int64_t first,
                                  std::int64_t rows, std::int64_t k);

/// How far a sum of products of two rows, of their elements from `begin` to `end`, may be from the
/// exact one. `x` is one of x_rows' rows, and `y` one of y_rows'.
double block_scaled_error(BlockScaledRows const& x_rows, std::int64_t x,
                          BlockScaledRows const& y_rows, std::int64_t y, std::int64_t begin,
                          std::int64_t end, bool pairs);

}  // namespace tegula::reference
