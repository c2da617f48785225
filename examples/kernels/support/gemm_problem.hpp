#pragma once

#include "problem.hpp"
#include "tegula/arch/tensor_map_description.hpp"
#include "tegula/tensor/tma_box.hpp"

namespace tegula::examples {

struct GemmShape {
  int m, n, k;
  float alpha = 1, beta = 0;
};

inline std::string to_string(GemmShape const& s) {
  return std::to_string(s.m) + " x " + std::to_string(s.n) + " x " + std::to_string(s.k);
}

/// The description of a matrix (mn, k) that TMA moves in these boxes; its lines are `leading`
/// elements apart.
inline TensorMapDescription describe(DType type, void const* data, int mn, int k,
                                     std::int64_t leading, TmaBoxes const& boxes) {
  bool const along_mn = boxes.contiguous == 0;
  TensorMapDescription d;
  d.dtype = type;
  d.rank = 2;
  d.address = data;
  d.extents = {along_mn ? mn : k, along_mn ? k : mn};
  d.strides = {leading * (bits(type) / 8)};
  d.box = {boxes.box(0), boxes.box(1)};
  d.swizzle = boxes.swizzle;
  return d;
}

/// C = alpha A B^T + beta C on a machine: A (m, k), B (n, k), C (m, n). Kernel::a_contiguous and
/// so on say along which axis each is contiguous, Kernel::boxes_a and so on how TMA moves those
/// that Params has as tensor maps. Lines are longer than need be, so that what is written beside C
/// is seen.
template <class Kernel, class Gpu> class GemmProblem {
 public:
  using T = typename Kernel::T;
  using Out = typename Kernel::Out;

  GemmProblem(Gpu& gpu, GemmShape const& shape, std::uint64_t seed)
      : gpu_(gpu),
        shape_(shape),
        lda_(leading<T>(Kernel::a_contiguous == 1 ? shape.k : shape.m)),
        ldb_(leading<T>(Kernel::b_contiguous == 1 ? shape.k : shape.n)),
        ldc_(leading<Out>(Kernel::c_contiguous == 1 ? shape.n : shape.m)),
        a_(random_numbers<T>(lda_ * (Kernel::a_contiguous == 1 ? shape.m : shape.k), 3 * seed)),
        b_(random_numbers<T>(ldb_ * (Kernel::b_contiguous == 1 ? shape.n : shape.k), 3 * seed + 1)),
        c_(random_numbers<Out>(ldc_ * (Kernel::c_contiguous == 1 ? shape.m : shape.n),
                               3 * seed + 2)) {
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(c_.size()); ++i) {
      bool const outside = i % ldc_ >= (Kernel::c_contiguous == 1 ? shape.n : shape.m);
      if (outside || shape.beta == 0) c_[static_cast<std::size_t>(i)] = poison<Out>();
    }
    T const* const a = gpu.upload(a_, "A");
    T const* const b = gpu.upload(b_, "B");
    device_c_ = gpu.upload(c_, "C");
    set(params_.a, a, shape.m, shape.k, lda_, Boxes<'a'>{});
    set(params_.b, b, shape.n, shape.k, ldb_, Boxes<'b'>{});
    set(params_.c, device_c_, shape.m, shape.n, ldc_, Boxes<'c'>{});
    if constexpr (requires { params_.m; })
      params_.m = shape.m, params_.n = shape.n, params_.k = shape.k;
    if constexpr (requires { params_.lda; }) params_.lda = lda_, params_.ldb = ldb_;
    if constexpr (requires { params_.ldc; }) params_.ldc = ldc_;
    if constexpr (requires { params_.alpha; })
      params_.alpha = shape.alpha, params_.beta = shape.beta;
  }

  void launch() { gpu_.template launch<Kernel>(Kernel::grid(params_), params_); }
  double operations() const { return 2.0 * shape_.m * shape_.n * shape_.k; }
  double bytes() const {
    return sizeof(T) * double(a_.size() + b_.size()) + sizeof(Out) * double(c_.size());
  }

  /// Holds the results of one launch, at most `most` x `most` of them, to float64; returns the
  /// largest error in units of its bound. Throws where one is beyond it, or where something beside
  /// C was written.
  double check(int most) const {
    std::vector<Out> const result = gpu_.download(device_c_, c_.size());
    Errors errors(to_string(shape_));
    for (int const m : some_of(shape_.m, most)) {
      for (int const n : some_of(shape_.n, most)) {
        double sum = 0, magnitude = 0;
        for (int k = 0; k < shape_.k; ++k) {
          double const product = element(a_, m, k, lda_, Kernel::a_contiguous) *
                                 element(b_, n, k, ldb_, Kernel::b_contiguous);
          sum += product, magnitude += std::abs(product);
        }
        double const c =
            shape_.beta == 0 ? 0 : shape_.beta * element(c_, m, n, ldc_, Kernel::c_contiguous);
        double const alpha = std::abs(shape_.alpha), accumulated = accumulation_error(shape_.k);
        double const value = shape_.alpha * sum + c;
        // alpha x, beta c and their sum round once each; then the result to its type.
        double const error = alpha * accumulated * magnitude +
                             3 * kU * (alpha * (1 + accumulated) * magnitude + std::abs(c));
        double const rounding = std::is_same_v<Out, float> ? 0 : unit_roundoff<Out>;
        errors.hold(element(result, m, n, ldc_, Kernel::c_contiguous), value,
                    error + rounding * (std::abs(value) + error),
                    "C(" + std::to_string(m) + ", " + std::to_string(n) + ")");
      }
    }
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(result.size()); ++i) {
      if (i % ldc_ >= (Kernel::c_contiguous == 1 ? shape_.n : shape_.m) &&
          !is_poison(result[static_cast<std::size_t>(i)]))
        throw std::runtime_error(to_string(shape_) + ": an element beside C was written");
    }
    return errors.worst();
  }

 private:
  template <char Operand> struct Boxes {
    static constexpr TmaBoxes get() {
      if constexpr (Operand == 'a') return Kernel::boxes_a;
      if constexpr (Operand == 'b') return Kernel::boxes_b;
      if constexpr (Operand == 'c') return Kernel::boxes_c;
    }
  };
  /// Lines start at multiples of 16 bytes, and leave at least 16 bytes between them.
  template <class E> static std::int64_t leading(int extent) {
    std::int64_t const piece = 16 / sizeof(E);
    return (extent + piece - 1) / piece * piece + piece;
  }
  template <class Parameter, class E, class Box>
  void set(Parameter& parameter, E* data, int mn, int k, std::int64_t leading, Box) {
    if constexpr (std::is_same_v<Parameter, TensorMap>) {
      parameter =
          gpu_.encode(describe(dtype_of<std::remove_const_t<E>>, data, mn, k, leading, Box::get()));
    } else {
      parameter = data;
    }
  }
  template <class E>
  static double element(std::vector<E> const& data, int row, int column, std::int64_t leading,
                        int contiguous) {
    return to_float(data[static_cast<std::size_t>(contiguous == 1 ? row * leading + column
                                                                  : row + column * leading)]);
  }

  Gpu& gpu_;
  GemmShape shape_;
  std::int64_t lda_, ldb_, ldc_;
  std::vector<T> a_, b_;
  std::vector<Out> c_;
  Out* device_c_;
  typename Kernel::Params params_{};
};

}  // namespace tegula::examples
