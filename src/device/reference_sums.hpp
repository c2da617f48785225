#pragma once

/// Sums of products in float64, and how far those of a tensor core may be from them. What the
/// references of GEMM and attention stand on; reference_sums.cpp derives the bounds.

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <system_error>
#include <thread>
#include <vector>

#include "tegula/numeric/dtype.hpp"

namespace tegula::reference {

/// Refuses rows that a result of `total` does not have.
void check_rows(char const* operation, std::vector<std::int64_t> const& rows, std::int64_t total);

/// The bound where anything is right, of a finite value.
inline constexpr double kInfinite = std::numeric_limits<double>::infinity();
/// The unit roundoff of f32.
inline constexpr double kU = 0x1p-24;

double unit_roundoff(DType type);
/// Half of the smallest subnormal.
double underflow(DType type);
/// By how much the tensor core may miss a sum of `products`, in units of the sum of their
/// magnitudes.
double mma_error(std::int64_t products);

/// The least normal magnitude of a type, which the exponent of a subnormal counts as.
double least_normal(DType type);
/// The magnitude of a factor, a subnormal one as the least normal one.
inline double aligned(double x, double least) { return x == 0 ? 0 : std::max(std::abs(x), least); }
bool has_subnormal(double const* x, DType type, std::int64_t n);
/// By how much the tensor core may miss the sum of the products of x and y, of 16 bits or tf32.
/// `magnitude`: of the products; `subnormal`: whether x or y holds a subnormal.
double products_error(double const* x, DType x_type, double const* y, DType y_type, std::int64_t n,
                      double magnitude, bool subnormal);

/// Calls work(i) for i < count on all of the host's cores.
template <class Work> void parallel_for(std::int64_t count, Work&& work) {
  std::atomic<std::int64_t> next = 0;
  auto const run = [&] {
    for (std::int64_t i; (i = next++) < count;) work(i);
  };
  std::vector<std::thread> threads;
  auto const helpers =
      std::min<std::int64_t>(count, std::max(1u, std::thread::hardware_concurrency())) - 1;
  try {
    for (std::int64_t t = 0; t < helpers; ++t) threads.emplace_back(run);
  } catch (std::system_error const&) {  // the system starts no more: those that there are do it all
  }
  run();
  for (auto& thread : threads) thread.join();
}

template <class T> T load(void const* data, std::int64_t index) {
  T value;
  std::memcpy(&value, static_cast<char const*>(data) + index * static_cast<std::int64_t>(sizeof(T)),
              sizeof(T));
  return value;
}

/// `rows` rows of `row` elements each, as doubles, contiguous; `inner` and `outer` are the strides
/// between elements and rows.
std::vector<double> matrix(void const* data, DType type, std::int64_t rows, std::int64_t row,
                           std::int64_t outer, std::int64_t inner);

struct Dot {
  double sum, magnitude;
};
Dot dot(double const* x, double const* y, std::int64_t n);
/// The magnitude of those products that are finite.
double finite_magnitude(double const* x, double const* y, std::int64_t n);
/// |x|, or 0 where that is not finite.
inline double if_finite(double x) { return std::isfinite(x) ? std::abs(x) : 0; }

/// Elements of K that one fp8 wgmma adds up.
inline constexpr std::int64_t kFp8Step = 32;

/// The error of a sum of products of fp8, by the rule of reference_sums.cpp, step by step. The
/// products may be known to `relative` only, and in absolute terms to `absolute` each. With
/// `promotes`, at most kPromotedSteps steps in a row are summed by the tensor core, and their sums
/// in f32.
class Fp8Sum {
 public:
  explicit Fp8Sum(double relative = 0, double absolute = 0, bool promotes = false)
      : relative_(relative), absolute_(absolute), promotes_(promotes) {}

  /// A product, and its largest magnitude where subnormal factors count as the least normal ones.
  void add(double product, double aligned) {
    sum_ += product;
    magnitude_ += relative_ * std::abs(product) + absolute_;
    largest_ = std::max(largest_, aligned);
  }
  void end_step() {
    most_ = std::max(most_, sum_);
    least_ = std::min(least_, sum_);
    std::rotate(steps_.begin(), steps_.begin() + 1, steps_.end());
    steps_.back() = {std::abs(sum_ - before_), magnitude_, error_};
    before_ = sum_;
    double partial = most_ - least_ + magnitude_ + error_;
    if (promotes_) {
      partial = magnitude_ - steps_.front().magnitude + error_ - steps_.front().error;
      for (Step const& step : steps_) partial += step.sum;
      error_ += 0x1.3p-20 * (most_ - least_ + magnitude_ + error_);
    }
    error_ += 0x1p-13 * (33 * std::max((1 + relative_) * largest_ + absolute_, partial) + partial);
    largest_ = 0;
  }
  /// Of the sum, beyond that of its products.
  double error() const { return error_; }

 private:
  static constexpr int kPromotedSteps = 8;  // 256 keys, a block's at most
  /// The magnitude of a step's sum; the errors before it.
  struct Step {
    double sum = 0, magnitude = 0, error = 0;
  };
  double relative_, absolute_;
  bool promotes_;
  double sum_ = 0, before_ = 0, most_ = 0, least_ = 0;
  std::array<Step, kPromotedSteps + 1> steps_{};  ///< the last ones
  double magnitude_ = 0;                          ///< of the products' own errors
  double largest_ = 0;                            ///< of the step
  double error_ = 0;
};

/// The error of a sum of n products of fp8.
double fp8_error(double const* x, DType x_type, double const* y, DType y_type, std::int64_t n);

}  // namespace tegula::reference
