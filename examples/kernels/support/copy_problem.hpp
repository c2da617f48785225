#pragma once

#include "problem.hpp"

namespace tegula::examples {

struct MatrixShape {
  int m, n;
};

inline std::string to_string(MatrixShape const& s) {
  return std::to_string(s.m) + " x " + std::to_string(s.n);
}

/// A kernel that moves the elements of a row-major matrix S (m, n) to D. With Kernel::transposes, D
/// (n, m) is S transposed; else D(i, j) is S(i, j), or zero where not Kernel::wanted(i, j).
template <class Kernel, class Gpu> class CopyProblem {
 public:
  CopyProblem(Gpu& gpu, MatrixShape const& shape, std::uint64_t seed)
      : gpu_(gpu),
        shape_(shape),
        lds_(leading(shape.n)),
        ldd_(leading(columns())),
        s_(random_numbers<float>(lds_ * shape.m, seed)),
        d_(static_cast<std::size_t>(ldd_ * (Kernel::transposes ? shape.n : shape.m)),
           poison<float>()) {
    params_ = {shape.m, shape.n, gpu.upload(s_, "S"), gpu.upload(d_, "D"), lds_, ldd_};
  }

  void launch() { gpu_.template launch<Kernel>(Kernel::grid(params_), params_); }
  double operations() const { return 0; }
  double bytes() const { return 2.0 * sizeof(float) * shape_.m * shape_.n; }

  /// Throws unless every element of D is right, and nothing beside D was written. Copies are exact.
  double check(int) const {
    std::vector<float> const result = gpu_.download(params_.d, d_.size());
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(result.size()); ++i) {
      int const row = static_cast<int>(i / ldd_), column = static_cast<int>(i % ldd_);
      float const found = result[static_cast<std::size_t>(i)];
      if (column >= columns()) {
        if (!is_poison(found))
          throw std::runtime_error(to_string(shape_) + ": an element beside D was written");
      } else if (found != expected(row, column)) {
        throw std::runtime_error(to_string(shape_) + ": D(" + std::to_string(row) + ", " +
                                 std::to_string(column) + ") is " + std::to_string(found) +
                                 ", not " + std::to_string(expected(row, column)));
      }
    }
    return 0;
  }

 private:
  static std::int64_t leading(int extent) { return (extent + 3) / 4 * 4 + 4; }
  int columns() const { return Kernel::transposes ? shape_.m : shape_.n; }
  float expected(int row, int column) const {
    if constexpr (Kernel::transposes) {
      return s_[static_cast<std::size_t>(column * lds_ + row)];
    } else {
      return Kernel::wanted(row, column) ? s_[static_cast<std::size_t>(row * lds_ + column)] : 0.0f;
    }
  }

  Gpu& gpu_;
  MatrixShape shape_;
  std::int64_t lds_, ldd_;
  std::vector<float> s_, d_;
  typename Kernel::Params params_;
};

}  // namespace tegula::examples
