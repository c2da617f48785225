#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tegula/atom/scaled_mma_spec.hpp"
#include "tegula/numeric/dtype.hpp"
#include "tegula/numeric/rounded_bits.hpp"

namespace tegula {

/// Operands of 128 bytes along k, four instructions of the spec, and scales: of few bits, whose
/// sums are exact.
template <ScaledMmaSpec S> class ScaledProblem {
 public:
  static constexpr int m = S.m, n = S.n, k = 4 * extent_k(S);
  static constexpr int scales_of_row = k / S.block, blocks = scales_of_row / 4;

  /// Rows of 32 words, of A and of B; words of four scales, (row, block).
  std::vector<std::uint32_t> a, b, scale_a, scale_b;
  std::vector<float> expected;  ///< (m, n)

  ScaledProblem() {
    std::vector<float> const of_a = operand(a, m, S.a, S.a_in_tensor_memory),
                             of_b = operand(b, n, S.b);
    std::vector<float> const by_a = scales(scale_a, m), by_b = scales(scale_b, n);
    double const sign = S.negate_a != S.negate_b ? -1 : 1;
    for (int row = 0; row < m; ++row) {
      for (int column = 0; column < n; ++column) {
        double sum = 0;
        for (int i = 0; i < k; ++i)
          sum += double{at(of_a, row * k + i)} * at(of_b, column * k + i) *
                 at(by_a, row * scales_of_row + i / S.block) *
                 at(by_b, column * scales_of_row + i / S.block);
        expected.push_back(static_cast<float>(sign * sum));
      }
    }
  }

 private:
  static float at(std::vector<float> const& values, int i) {
    return values[static_cast<std::size_t>(i)];
  }
  int draw(int count) {
    seed_ = seed_ * 1664525u + 1013904223u;
    return static_cast<int>((seed_ >> 16) % static_cast<std::uint32_t>(count));
  }
  std::vector<float> operand(std::vector<std::uint32_t>& words, int rows, DType type,
                             bool in_tensor_memory = false) {
    std::vector<float> values(static_cast<std::size_t>(rows * k));
    for (float& x : values) x = static_cast<float>(draw(9) - 4);
    // Of mxf8f6f4 16 elements take 16 bytes: fewer bits each lie at their beginning, and nobody
    // reads what follows.
    bool const of_any = S.kind == ScaledMmaKind::mxf8f6f4;
    int const unit = of_any ? 16 : 128 / bits(type);
    if (of_any && in_tensor_memory && bits(type) < 8) {  // a byte each, whose other bits are ones
      int const first = bits(type) == 4 ? 2 : 0;
      std::uint32_t const beside = ~(((1u << bits(type)) - 1) << first) & 0xff;
      for (int i = 0; i < rows * k; ++i) {
        if (i % 4 == 0) words.push_back(0);
        words.back() |= (rounded_bits(type, at(values, i)) << first | beside) << i % 4 * 8;
      }
      return values;
    }
    for (int first = 0; first < rows * k; first += unit) {
      std::uint32_t piece[4] = {};
      for (int bit = unit * bits(type); bit < 128; ++bit) piece[bit / 32] |= 1u << bit % 32;
      for (int i = 0; i < unit * bits(type); ++i) {
        std::uint32_t const code = rounded_bits(type, at(values, first + i / bits(type)));
        piece[i / 32] |= (code >> i % bits(type) & 1) << i % 32;
      }
      words.insert(words.end(), piece, piece + 4);
    }
    return values;
  }
  std::vector<float> scales(std::vector<std::uint32_t>& words, int rows) {
    std::vector<float> values;
    for (int i = 0; i < rows * scales_of_row; ++i) {
      bool const ue4m3 = S.scale == DType::ue4m3;
      float const scale =
          ue4m3 ? 0.5f * static_cast<float>(1 + draw(5)) : std::ldexp(1.0f, draw(5) - 2);
      values.push_back(scale);
      std::uint32_t const code = ue4m3 ? to_float_ue4m3(scale).bits : to_float_ue8m0(scale).bits;
      if (i % 4 == 0) words.push_back(0);
      words.back() |= code << i % 4 * 8;
    }
    return values;
  }
  std::uint32_t seed_ = 7;
};

/// Scales of `rows` rows from `first` on, as a tcgen05_cp of rows of 16 bytes brings them: for each
/// block pieces of 32 rows of four words, scale_column() of which are a lane's.
inline void append_scale_pieces(std::vector<std::uint32_t>& in,
                                std::vector<std::uint32_t> const& scales, int blocks, int block,
                                int first, int rows) {
  for (int piece = 0; piece < (rows + 127) / 128; ++piece) {
    for (int i = 0; i < 128; ++i) {
      int const row = 128 * piece + i % 4 * 32 + i / 4;
      in.push_back(row < rows ? scales[static_cast<std::size_t>((first + row) * blocks + block)]
                              : 0);
    }
  }
}

}  // namespace tegula
