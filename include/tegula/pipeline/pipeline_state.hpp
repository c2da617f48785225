#pragma once

#include "tegula/macros.hpp"

namespace tegula {

/// A walk through a ring of `Stages` buffers: the present one, and the parity of the round. Producer and
/// consumer each hold one and take the same steps.
template <int Stages> struct PipelineState {
  int stage = 0;
  int parity = 0;

  TEGULA_HOST_DEVICE constexpr void next() {
    if (++stage == Stages) {
      stage = 0;
      parity ^= 1;
    }
  }

  /// As `steps` times next().
  TEGULA_HOST_DEVICE constexpr void advance(int steps) {
    int const reached = stage + steps;
    int const rounds = reached / Stages;
    stage = reached - rounds * Stages;
    parity ^= rounds & 1;
  }
};

}  // namespace tegula
