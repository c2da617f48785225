#pragma once

#include "problem.hpp"

namespace tegula::examples {

struct AttentionShape {
  int heads, seq;
  bool causal;
};

inline std::string to_string(AttentionShape const& s) {
  return std::to_string(s.heads) + " heads, " + std::to_string(s.seq) +
         (s.causal ? " tokens, causal" : " tokens");
}

/// O = softmax(Q K^T / sqrt(head_dim)) V on a machine, by head, bf16 (heads, seq, head_dim).
template <class Kernel, class Gpu> class AttentionProblem {
 public:
  using T = typename Kernel::T;
  static constexpr int dim = Kernel::head_dim;

  AttentionProblem(Gpu& gpu, AttentionShape const& shape, std::uint64_t seed)
      : gpu_(gpu),
        shape_(shape),
        q_(random_numbers<T>(elements(), 3 * seed)),
        k_(random_numbers<T>(elements(), 3 * seed + 1)),
        v_(random_numbers<T>(elements(), 3 * seed + 2)) {
    std::vector<T> const nothing(q_.size(), poison<T>());
    params_ = {shape.heads,         shape.seq,           gpu.upload(q_, "Q"),
               gpu.upload(k_, "K"), gpu.upload(v_, "V"), gpu.upload(nothing, "O"),
               shape.causal};
  }

  void launch() { gpu_.template launch<Kernel>(Kernel::grid(params_), params_); }
  /// Of the two products; causal, of what the mask leaves.
  double operations() const {
    return 4.0 * shape_.heads * shape_.seq * shape_.seq * dim / (shape_.causal ? 2 : 1);
  }
  double bytes() const { return 4.0 * sizeof(T) * static_cast<double>(elements()); }

  /// Holds at most `most` rows to float64; returns the largest error in units of its bound.
  double check(int most) const {
    std::vector<T> const result = gpu_.download(params_.o, q_.size());
    Errors errors(to_string(shape_));
    for (int const row : some_of(shape_.heads * shape_.seq, most)) check_row(row, result, errors);
    return errors.worst();
  }

 private:
  std::int64_t elements() const { return std::int64_t{shape_.heads} * shape_.seq * dim; }
  static double at(std::vector<T> const& tensor, std::int64_t row, int d) {
    return to_float(tensor[static_cast<std::size_t>(row * dim + d)]);
  }

  /// The bound, with e = 2^-22 for the exponential and u = 2^-24: a score errs by the product's
  /// accumulation and by 6 u of the largest; a weight by that, and by one exponential and one
  /// product for each block of keys, of which there is at most one in 16 keys; the sum by its
  /// additions, and as the weights do; P by its rounding; the second product by its accumulation;
  /// and O by its rounding. Derived in src/device/reference_attention.cpp.
  void check_row(int row, std::vector<T> const& result, Errors& errors) const {
    std::int64_t const head = row / shape_.seq * shape_.seq;
    int const keys = shape_.causal ? row % shape_.seq + 1 : shape_.seq;
    double const scale = 1 / std::sqrt(double{dim}), blocks = std::ceil(keys / 16.0);
    std::vector<double> weight(static_cast<std::size_t>(keys));
    double largest = -INFINITY, most = 0, delta = 0, sum = 0;
    for (int j = 0; j < keys; ++j) {
      double s = 0, magnitude = 0;
      for (int d = 0; d < dim; ++d) {
        s += at(q_, row, d) * at(k_, head + j, d);
        magnitude += std::abs(at(q_, row, d) * at(k_, head + j, d));
      }
      weight[static_cast<std::size_t>(j)] = s * scale;
      largest = std::max(largest, s * scale), most = std::max(most, std::abs(s * scale));
      delta = std::max(delta, accumulation_error(dim) * magnitude * scale);
    }
    for (double& w : weight) sum += w = std::exp(w - largest);
    double const eta = std::expm1(delta + 6 * kU * (most + delta) + (1 + blocks) * (0x1p-22 + kU));
    double const relative = 2.01 * eta + (keys / 4.0 + 8) * kU + unit_roundoff<T> +
                            accumulation_error(keys + 8 * blocks);
    for (int d = 0; d < dim; ++d) {
      double value = 0, magnitude = 0;
      for (int j = 0; j < keys; ++j) {
        double const product = weight[static_cast<std::size_t>(j)] * at(v_, head + j, d) / sum;
        value += product, magnitude += std::abs(product);
      }
      double const error = 1.01 * relative * magnitude + 0x1p-126 * keys;
      errors.hold(at(result, row, d), value, error + unit_roundoff<T> * (std::abs(value) + error),
                  "O(" + std::to_string(row) + ", " + std::to_string(d) + ")");
    }
  }

  Gpu& gpu_;
  AttentionShape shape_;
  std::vector<T> q_, k_, v_;
  typename Kernel::Params params_;
};

}  // namespace tegula::examples
