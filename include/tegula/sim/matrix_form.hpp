#pragma once

#include <cstdint>

namespace tegula::sim {

/// What ldmatrix and stmatrix move: 8x8 matrices of 16-bit elements, as they lie or transposed; or,
/// transposed, bytes: 16x16 of them, which stmatrix moves in two halves.
enum class MatrixForm : std::uint8_t { plain, transposed, bytes_transposed };
/// The lane that holds element (row, column) of a matrix in shared memory, row along 16 bytes.
constexpr int lane_of_matrix(MatrixForm form, bool store, int row, int column) {
  if (form == MatrixForm::plain) return 4 * row + column / 2;
  if (form == MatrixForm::transposed) return 4 * column + row / 2;
  return 4 * (column % 8) + row / (store ? 2 : 4);
}

}  // namespace tegula::sim
