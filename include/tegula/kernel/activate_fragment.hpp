#pragma once

#include "tegula/kernel/activation.hpp"
#include "tegula/tensor/fragment.hpp"

namespace tegula {

template <Activation A, Registers F> TEGULA_DEVICE void activate_by(F const& values) {
#pragma unroll
  for (int i = 0; i < F::size; ++i) values(i) = activate<A>(values(i));
}

/// Applies an activation that is known only at run time to a thread's values. Which it is, is asked
/// once for all of them.
template <Registers F> TEGULA_DEVICE void activate_all(Activation activation, F const& values) {
  if (activation == Activation::relu) {
    activate_by<Activation::relu>(values);
  } else if (activation == Activation::gelu) {
    activate_by<Activation::gelu>(values);
  } else if (activation == Activation::silu) {
    activate_by<Activation::silu>(values);
  }
}

}  // namespace tegula
