#include "block_scaled_reference.hpp"

#include <algorithm>
#include <cmath>

#include "tegula/device/reference.hpp"
#include "tegula/kernel/block_scale.hpp"

// The bound. With kind mxf8f6f4 an instruction truncates 33 terms to 25 fraction bits below 2^e, e
// the largest exponent of a product (a subnormal factor counting as the least normal one) or of the
// sum so far; with the kinds of 4 bits 5 terms to 35, e of two scales, or of the sum. Then it
// truncates the sum to 23 bits. With R the magnitude of the exact sum before it or after it,
// whichever is larger, and E the error so far, the sum is at most R + E.

namespace tegula::reference {
namespace {

constexpr int kOfZero = -4096;  // below the exponent of any number

/// The exponent under which the tensor core holds a value: at least the format's least.
int held_exponent(DType type, double value) {
  int const least = type == DType::e5m2                          ? -14
                    : type == DType::e3m2                        ? -2
                    : type == DType::e2m1 || type == DType::e2m3 ? 0
                    : type == DType::ue8m0                       ? -127
                                                                 : -6;
  return value == 0 || !std::isfinite(value) ? kOfZero : std::max(std::ilogb(value), least);
}

}  // namespace

BlockScaledRows block_scaled_rows(void const* data, DType type, std::int64_t ld, void const* scales,
                                  BlockScale const& how, bool pairs, std::int64_t first,
                                  std::int64_t rows, std::int64_t k) {
  BlockScaledRows all{.k = k};
  int const pieces_k = scale_pieces_k(static_cast<int>(k), how.block);
  for (std::int64_t row = first; row < first + rows; ++row) {
    for (std::int64_t i = 0; i < k; ++i) {
      double const x = element(data, type, row * ld + i);
      double const scale =
          element(scales, how.type, block_scale_offset(row, i / how.block, pieces_k));
      all.value.push_back(x * scale);
      all.exponent.push_back(held_exponent(how.type, scale) + (pairs ? 0 : held_exponent(type, x)));
    }
  }
  return all;
}

double block_scaled_error(BlockScaledRows const& x_rows, std::int64_t x,
                          BlockScaledRows const& y_rows, std::int64_t y, std::int64_t begin,
                          std::int64_t end, bool pairs) {
  std::int64_t const step = pairs ? 64 : 32;  // 32 bytes
  double const lost = pairs ? 5 * 0x1p-35 : 33 * 0x1p-25;
  double sum = 0, error = 0;
  for (std::int64_t first = begin; first < end; first += step) {
    double const before = std::abs(sum);
    int exponent = kOfZero;
    for (std::int64_t i = first; i < std::min(end, first + step); ++i) {
      auto const at_x = static_cast<std::size_t>(x * x_rows.k + i),
                 at_y = static_cast<std::size_t>(y * y_rows.k + i);
      sum += x_rows.value[at_x] * y_rows.value[at_y];
      exponent = std::max(exponent, x_rows.exponent[at_x] + y_rows.exponent[at_y]);
    }
    double const held = std::max(before, std::abs(sum)) + error;
    error += lost * std::max(std::ldexp(1.0, exponent), held) + 0x1p-23 * held + 0x1p-149;
  }
  return error;
}

}  // namespace tegula::reference
