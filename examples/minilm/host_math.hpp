#pragma once

// The few steps of the network that are neither a GEMM nor attention, on the host, in float.

#include <cmath>
#include <cstddef>
#include <numbers>
#include <span>
#include <vector>

namespace minilm {

/// Normalises each row of x (rows, width), where width is gain.size(), to mean 0 and variance 1,
/// then scales it by gain and shifts it (Ba et al., arXiv 1607.06450). Sums are taken in double.
inline void layer_norm(std::span<float> x, std::span<float const> gain,
                       std::span<float const> shift, float epsilon) {
  std::size_t const width = gain.size();
  for (std::size_t row = 0; row < x.size(); row += width) {
    std::span<float> const values = x.subspan(row, width);
    double mean = 0;
    for (float v : values) mean += v;
    mean /= static_cast<double>(width);
    double variance = 0;
    for (float v : values) variance += (v - mean) * (v - mean);
    variance /= static_cast<double>(width);
    double const scale = 1 / std::sqrt(variance + epsilon);
    for (std::size_t i = 0; i < width; ++i)
      values[i] = static_cast<float>((values[i] - mean) * scale) * gain[i] + shift[i];
  }
}

/// x := x Phi(x), Phi the normal distribution function (Hendrycks and Gimpel, arXiv 1606.08415; the
/// exact form, not the tanh one).
inline void gelu(std::span<float> x) {
  for (float& v : x) v *= 0.5f * (1 + std::erf(v / std::numbers::sqrt2_v<float>));
}

/// The mean of the rows of x (rows, width), scaled to length 1.
inline std::vector<float> unit_mean(std::span<float const> x, std::size_t width) {
  std::vector<double> sum(width);
  for (std::size_t i = 0; i < x.size(); ++i) sum[i % width] += x[i];
  double squares = 0;
  for (double s : sum) squares += s * s;
  double const scale = 1 / std::sqrt(squares);
  std::vector<float> unit(width);
  for (std::size_t i = 0; i < width; ++i) unit[i] = static_cast<float>(sum[i] * scale);
  return unit;
}

}  // namespace minilm
