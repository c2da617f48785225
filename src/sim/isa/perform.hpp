#pragma once

#include <type_traits>

#include "isa/current_cta.hpp"
#include "machine/cluster.hpp"
#include "mutation/mutation.hpp"
#include "tegula/sim/hooks.hpp"
#include "values/instruction.hpp"

namespace tegula::sim {

/// What the launch's mutant does to the instruction at `where`: one of the mutations of its row,
/// but for `without`, for which these operands leave no room.
inline Mutation mutation_of(Instruction instruction, SourceLocation where,
                            Mutation without = Mutation::none) {
  if (mutating.load(std::memory_order_relaxed) == 0) [[likely]]
    return Mutation::none;
  Mutations const& row = row_of(instruction).mutations;
  return mutation(where, row.operation, row.admitted & ~without);
}

/// Performs an instruction that can be mutated: calls `body(cta)`, or `body(cta, mutation)` where
/// it does what is weakened, counted or flipped by itself. Not at all where it is removed; where it
/// is delayed, after the thread's next instruction, so that `body` holds its operands by value.
template <class Body>
void perform(Instruction instruction, SourceLocation where, Mutation without, Body body) {
  Mutation const mutation = mutation_of(instruction, where, without);
  auto const now = [body](Mutation m) {
    if constexpr (std::is_invocable_v<Body, Cta&, Mutation>) {
      body(current_cta(), m);
    } else {
      body(current_cta());
    }
  };
  if (mutation == Mutation::none) [[likely]] {
    now(mutation);
  } else if (mutation == Mutation::delayed) {
    delay([now] { now(Mutation::none); });
  } else if (mutation != Mutation::removed) {
    now(mutation);
  }
}
template <class Body> void perform(Instruction instruction, SourceLocation where, Body body) {
  perform(instruction, where, Mutation::none, body);
}

/// A wait that leaves no group in flight cannot leave one less.
constexpr Mutation fewer_than(int groups_left) {
  return groups_left > 0 ? Mutation::none : Mutation::less;
}

}  // namespace tegula::sim
