#pragma once

#include "tegula/arch/source_location.hpp"
#include "tegula/macros.hpp"
#include "tegula/sim/mutation.hpp"
#if !TEGULA_GPU
#include <type_traits>

#include "tegula/sim/hooks.hpp"
#endif

/// Values that kernels and pipelines compute and that mutation testing changes: phases, stages,
/// predicates, swizzles, fills with zeros. A function a kind; each returns what it is given,
/// unless the statement at `where` is the one to be mutated. Instructions are mutated by who
/// executes them.
///
/// On the simulated machine the launch says what to mutate (sim::Options::mutant); without that, a
/// value costs a load and a branch that is never taken. On a GPU it is decided at compile time:
/// nothing is left, unless the translation unit is compiled with all of
///   -DTEGULA_MUTANT_FILE='"kernel/gemm_sm90.hpp"' -DTEGULA_MUTANT_LINE=123
///   -DTEGULA_MUTANT_OPERATION=stage_increment -DTEGULA_MUTANT_KIND=removed
/// where the file is the last parts of a path, and operation and kind are enumerators of Operation
/// and Mutation.
namespace tegula {

/// Whether values can be mutated: objects then remember the line that made them.
#if TEGULA_GPU && !defined(TEGULA_MUTANT_FILE)
#define TEGULA_HAS_MUTABLE_VALUES 0
#else
#define TEGULA_HAS_MUTABLE_VALUES 1
#endif

/// What is to be done to the statement at `where`: none, or one of those it admits.
#if TEGULA_GPU
#if defined(TEGULA_MUTANT_FILE)
TEGULA_HOST_DEVICE constexpr Mutation mutation(SourceLocation where, Operation operation,
                                               Mutation admitted) {
  constexpr Mutation kind = Mutation::TEGULA_MUTANT_KIND;
  return where.mutant && operation == Operation::TEGULA_MUTANT_OPERATION && admits(admitted, kind)
             ? kind
             : Mutation::none;
}
#else
TEGULA_HOST_DEVICE constexpr Mutation mutation(SourceLocation, Operation, Mutation) {
  return Mutation::none;
}
#endif
#else
constexpr Mutation mutation(SourceLocation where, Operation operation, Mutation admitted) {
  if (std::is_constant_evaluated()) return Mutation::none;
  if (sim::mutating.load(std::memory_order_relaxed) == 0) [[likely]]
    return Mutation::none;
  return sim::mutation(where, operation, admitted);
}
#endif

/// The parity that a walk through a ring, or a turn, begins with.
TEGULA_HOST_DEVICE constexpr int initial_parity(int parity, SourceLocation where) {
  return mutation(where, Operation::initial_phase, Mutation::flipped) == Mutation::flipped
             ? parity ^ 1
             : parity;
}

/// The parity, so many rounds later.
TEGULA_HOST_DEVICE constexpr int parity_after(int parity, int rounds, SourceLocation where) {
  if (mutation(where, Operation::phase, Mutation::removed) == Mutation::removed) return parity;
  return parity ^ (rounds & 1);
}

/// How many steps a walk takes through a ring: one, or `steps` at once.
TEGULA_HOST_DEVICE constexpr int one_stage(SourceLocation where) {
  Mutation const m =
      mutation(where, Operation::stage_increment, Mutation::removed | Mutation::more);
  return m == Mutation::removed ? 0 : counted(1, m);
}
TEGULA_HOST_DEVICE constexpr int stage_steps(int steps, SourceLocation where) {
  Mutation const m = mutation(where, Operation::stage_increment,
                              Mutation::removed | Mutation::less | Mutation::more);
  return m == Mutation::removed ? 0 : counted(steps, m);
}

/// `end`, the first index that a predicate keeps an access away from.
TEGULA_HOST_DEVICE constexpr int edge(int end, SourceLocation where = SourceLocation::current()) {
  Mutation const m =
      mutation(where, Operation::predicate, Mutation::removed | Mutation::less | Mutation::more);
  return m == Mutation::removed ? 0x7fffffff : counted(end, m);
}

/// Whether an address is swizzled. `Matters`: it makes a difference.
template <bool Matters> TEGULA_HOST_DEVICE constexpr bool is_swizzled(SourceLocation where) {
  return mutation(where, Operation::swizzle, Matters ? Mutation::removed : Mutation::none) !=
         Mutation::removed;
}

/// How a copy fills what lies outside of a tensor with zeros: `left`, the elements before the edge;
/// none where it copies from outside, too. `Clips`: it has an edge.
struct ZeroFill {
  int left;
  bool none;
};
template <bool Clips>
TEGULA_HOST_DEVICE constexpr ZeroFill zero_fill(int left, SourceLocation where) {
  Mutation const m =
      mutation(where, Operation::zero_fill,
               Clips ? Mutation::removed | Mutation::less | Mutation::more : Mutation::none);
  if (m == Mutation::removed) return {left, true};
  return {counted(left, m), !Clips};
}

}  // namespace tegula
