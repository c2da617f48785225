#pragma once

#include "tegula/arch/mutant.hpp"
#include "tegula/arch/source_location.hpp"
#include "tegula/macros.hpp"

namespace tegula {

/// The buffer after `stage` in a ring of `Stages`.
template <int Stages>
TEGULA_HOST_DEVICE constexpr int next_stage(int stage, SourceLocation where = SourceLocation::current()) {
  Mutation const m = mutation(where, Operation::stage_increment, Mutation::removed | Mutation::more);
  if (m == Mutation::removed) return stage;
  if (m == Mutation::more) stage = stage + 1 == Stages ? 0 : stage + 1;
  return stage + 1 == Stages ? 0 : stage + 1;
}

/// A walk through a ring of `Stages` buffers: the present one, and the parity of the round. Producer and
/// consumer each hold one and take the same steps.
template <int Stages> struct PipelineState {
  int stage = 0;
  int parity;

  TEGULA_HOST_DEVICE constexpr explicit PipelineState(SourceLocation where = SourceLocation::current())
      : parity(mutation(where, Operation::initial_phase, Mutation::flipped) == Mutation::flipped ? 1 : 0) {}

  TEGULA_HOST_DEVICE constexpr void next(SourceLocation where = SourceLocation::current()) {
    Mutation const m = mutation(where, Operation::stage_increment, Mutation::removed | Mutation::more);
    if (m == Mutation::removed) return;
    step(where);
    if (m == Mutation::more) step(where);
  }

  /// As `steps` times next().
  TEGULA_HOST_DEVICE constexpr void advance(int steps, SourceLocation where = SourceLocation::current()) {
    Mutation const m =
        mutation(where, Operation::stage_increment, Mutation::removed | Mutation::less | Mutation::more);
    if (m == Mutation::removed) return;
    steps = counted(steps, m);
    int const reached = stage + steps;
    int const rounds = reached / Stages;
    stage = reached - rounds * Stages;
    turn(rounds, where);
  }

 private:
  TEGULA_HOST_DEVICE constexpr void step(SourceLocation where) {
    if (++stage == Stages) {
      stage = 0;
      turn(1, where);
    }
  }

  /// The parity, so many rounds later.
  TEGULA_HOST_DEVICE constexpr void turn(int rounds, SourceLocation where) {
    if (mutation(where, Operation::phase, Mutation::removed) == Mutation::removed) return;
    parity ^= rounds & 1;
  }
};

}  // namespace tegula
