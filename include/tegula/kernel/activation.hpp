#pragma once

#include <cstdint>

#include "tegula/arch/math.hpp"
#include "tegula/macros.hpp"

/// Functions applied to each element of a GEMM's result before it is stored.
namespace tegula {

enum class Activation : std::uint8_t { none, relu, gelu, silu };

constexpr char const* to_string(Activation activation) {
  constexpr char const* names[] = {"none", "relu", "gelu", "silu"};
  return names[static_cast<int>(activation)];
}

/// activate<A>(x), in f32.
///
/// relu: max(x, 0), NaN where x is. gelu: x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) (Hendrycks
/// and Gimpel, arXiv 1606.08415), with tanh.approx. silu: x / (1 + exp(-x)) (Elfwing et al., arXiv
/// 1702.03118), as x/2 (1 + tanh(x/2)).
template <Activation A> TEGULA_DEVICE float activate(float x) {
  if constexpr (A == Activation::relu) {
    return x < 0.0f ? 0.0f : x;
  } else if constexpr (A == Activation::gelu) {
    float const inner = 0.7978845608f * fma(0.044715f * x * x, x, x);
    return 0.5f * x * (1.0f + tanh_approx(inner));
  } else if constexpr (A == Activation::silu) {
    return 0.5f * x * (1.0f + tanh_approx(0.5f * x));
  } else {
    return x;
  }
}

/// The same, of an activation known only at run time.
TEGULA_DEVICE float activate(Activation activation, float x) {
  switch (activation) {
    case Activation::relu:
      return activate<Activation::relu>(x);
    case Activation::gelu:
      return activate<Activation::gelu>(x);
    case Activation::silu:
      return activate<Activation::silu>(x);
    case Activation::none:
      break;
  }
  return x;
}

}  // namespace tegula
