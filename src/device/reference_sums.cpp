#include "reference_sums.hpp"

#include <limits>

#include "tegula/device/reference.hpp"

// The bounds
//
// u = 2^-24 is the unit roundoff of f32, u_out that of the output type. The tensor core adds
// products in steps of at least 8: each step aligns its products and the accumulator, at most 9
// terms, to the largest exponent among them, truncates each to 24 fractional bits, and rounds the
// sum towards zero to f32 (DESIGN section 5; an sm_90's step of 16 with 25 bits errs less per
// product). With S the sum of the products' magnitudes, which bounds every partial sum, a step errs
// by at most 9 * 2^-24 S + 2^-23 S = 11 u S, and K products by
//     mma(K) * S,  mma(K) = r / (1 - r),  r = 11 u ceil(K / 8)
// (the quotient covers the growth of the partial sums by earlier errors). A product below the range
// of f32 adds at most 2^-149 a step. A subnormal factor has the exponent of the least normal one,
// so in S, too, it counts as that.
//
// wgmma of tf32 adds 8 products a step with 25 bits: 4.5 u + 2 u, less than the 11 u above. Where
// CTAs share K their sums are added in f32, a rounding for each, which the difference covers from 2
// steps of a CTA on, and one step's own does below that.
//
// wgmma of fp8 adds 32 products a step with 13 fractional bits, and keeps 13 of the sum: of 33
// terms each errs by less than 2^-13 of the largest power of two among them, the sum by 2^-13 of
// itself. Here a bound from S alone would say little, so each step is followed: with P the largest
// product of the step (a subnormal factor counting as the least normal one), R the magnitude of the
// partial sum before it or after it, whichever is larger, and E the error so far, the step adds at
// most 33 * 2^-13 max(P, R + E) + 2^-13 (R + E). In which order a step's products stand does not
// matter, and neither does a split of K: the partial sums of a share are differences of those of
// the whole; with shares, R is bounded by the largest such difference, the largest less the least.

namespace tegula::reference {

double unit_roundoff(DType type) {
  return type == DType::f16    ? 0x1p-11
         : type == DType::bf16 ? 0x1p-8
         : type == DType::e4m3 ? 0x1p-4
                               : kU;
}

double underflow(DType type) {
  return type == DType::f16 ? 0x1p-25 : type == DType::bf16 ? 0x1p-134 : 0x1p-150;
}

double mma_error(std::int64_t products) {
  double const r = 11 * kU * static_cast<double>((products + 7) / 8);
  return r < 0.5 ? r / (1 - r) : kInfinite;
}

double products_error(double const* x, DType x_type, double const* y, DType y_type, std::int64_t n,
                      double magnitude, bool subnormal) {
  if (subnormal) {
    double const x_least = least_normal(x_type), y_least = least_normal(y_type);
    magnitude = 0;
    for (std::int64_t i = 0; i < n; ++i)
      magnitude += aligned(x[i], x_least) * aligned(y[i], y_least);
  }
  return mma_error(n) * magnitude + 0x1p-149 * static_cast<double>(n / 8 + 1);
}

bool has_subnormal(double const* x, DType type, std::int64_t n) {
  double const least = least_normal(type);
  return std::any_of(x, x + n, [&](double value) { return value != 0 && std::abs(value) < least; });
}

std::vector<double> matrix(void const* data, DType type, std::int64_t rows, std::int64_t row,
                           std::int64_t outer, std::int64_t inner) {
  std::vector<double> result(static_cast<std::size_t>(rows * row));
  parallel_for(rows, [&](std::int64_t r) {
    for (std::int64_t i = 0; i < row; ++i)
      result[static_cast<std::size_t>(r * row + i)] = element(data, type, r * outer + i * inner);
  });
  return result;
}

Dot dot(double const* x, double const* y, std::int64_t n) {
  constexpr int lanes = 8;  // independent sums, for the host's vector units
  double sum[lanes] = {}, magnitude[lanes] = {};
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    for (int l = 0; l < lanes; ++l) {
      double const product = x[i + l] * y[i + l];
      sum[l] += product;
      magnitude[l] += std::abs(product);
    }
  }
  for (; i < n; ++i) {
    sum[0] += x[i] * y[i];
    magnitude[0] += std::abs(x[i] * y[i]);
  }
  Dot total{0, 0};
  for (int l = 0; l < lanes; ++l) total.sum += sum[l], total.magnitude += magnitude[l];
  return total;
}

double finite_magnitude(double const* x, double const* y, std::int64_t n) {
  double magnitude = 0;
  for (std::int64_t i = 0; i < n; ++i) magnitude += if_finite(x[i] * y[i]);
  return magnitude;
}

double least_normal(DType type) {
  switch (type) {
    case DType::e4m3:
      return 0x1p-6;
    case DType::e5m2:
    case DType::f16:
      return 0x1p-14;
    default:
      return 0x1p-126;
  }
}

double fp8_error(double const* x, DType x_type, double const* y, DType y_type, std::int64_t n) {
  double const x_least = least_normal(x_type), y_least = least_normal(y_type);
  Fp8Sum sum;
  for (std::int64_t first = 0; first < n; first += kFp8Step) {
    for (std::int64_t i = first; i < std::min(n, first + kFp8Step); ++i)
      sum.add(x[i] * y[i], std::max(std::abs(x[i]), x_least) * std::max(std::abs(y[i]), y_least));
    sum.end_step();
  }
  return sum.error();
}

}  // namespace tegula::reference
