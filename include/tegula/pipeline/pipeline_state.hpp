#pragma once

#include "tegula/arch/source_location.hpp"
#include "tegula/macros.hpp"
#include "tegula/sim/mutable_values.hpp"

namespace tegula {

/// The buffer after `stage` in a ring of `Stages`.
template <int Stages>
TEGULA_HOST_DEVICE constexpr int next_stage(int stage,
                                            SourceLocation where = SourceLocation::current()) {
  for (int left = one_stage(where); left > 0; --left) stage = stage + 1 == Stages ? 0 : stage + 1;
  return stage;
}

/// A walk through a ring of `Stages` buffers: the present one, and the parity of the round.
/// Producer and consumer each hold one and take the same steps.
template <int Stages> struct PipelineState {
  int stage = 0;
  int parity;

  TEGULA_HOST_DEVICE constexpr explicit PipelineState(
      SourceLocation where = SourceLocation::current())
      : parity(initial_parity(0, where)) {}

  TEGULA_HOST_DEVICE constexpr void next(SourceLocation where = SourceLocation::current()) {
    for (int left = one_stage(where); left > 0; --left) {
      if (++stage != Stages) continue;
      stage = 0;
      parity = parity_after(parity, 1, where);
    }
  }

  /// As `steps` times next().
  TEGULA_HOST_DEVICE constexpr void advance(int steps,
                                            SourceLocation where = SourceLocation::current()) {
    int const reached = stage + stage_steps(steps, where);
    int const rounds = reached / Stages;
    stage = reached - rounds * Stages;
    parity = parity_after(parity, rounds, where);
  }
};

}  // namespace tegula
