#pragma once

#include "tegula/arch/mutation.hpp"
#include "tegula/arch/source_location.hpp"
#include "tegula/macros.hpp"
#if !TEGULA_GPU
#include <type_traits>

#include "tegula/sim/hooks.hpp"
#endif

/// Marks for mutation testing: each statement that orders or places something asks here whether it is the one
/// to be mutated. A *mutant* is (file, line, operation, mutation), all executions of that statement.
///
/// On the simulated machine the launch says which (sim::Options::mutant); without one, a mark is a load and a
/// branch that is never taken. On a GPU it is decided at compile time: nothing is left of a mark, unless the
/// translation unit is compiled with all of
///   -DTEGULA_MUTANT_FILE='"kernel/gemm_sm90.hpp"' -DTEGULA_MUTANT_LINE=123
///   -DTEGULA_MUTANT_OPERATION=mbarrier_arrive -DTEGULA_MUTANT_KIND=removed
/// where the file is the last parts of a path, and operation and kind are enumerators of Operation and
/// Mutation.
namespace tegula {

/// Whether marks mean anything: objects then remember the line that made them, for the marks in their
/// functions.
#if TEGULA_GPU && !defined(TEGULA_MUTANT_FILE)
#define TEGULA_HAS_MARKS 0
#else
#define TEGULA_HAS_MARKS 1
#endif

/// What is to be done to the statement at `where`: none, or one of those it admits.
#if TEGULA_GPU
#if defined(TEGULA_MUTANT_FILE)
TEGULA_HOST_DEVICE constexpr Mutation mutation(SourceLocation where, Operation operation, Mutation admitted) {
  constexpr Mutation kind = Mutation::TEGULA_MUTANT_KIND;
  return where.mutant && operation == Operation::TEGULA_MUTANT_OPERATION && admits(admitted, kind)
             ? kind
             : Mutation::none;
}
#else
TEGULA_HOST_DEVICE constexpr Mutation mutation(SourceLocation, Operation, Mutation) { return Mutation::none; }
#endif
#else
constexpr Mutation mutation(SourceLocation where, Operation operation, Mutation admitted) {
  if (std::is_constant_evaluated()) return Mutation::none;
  if (sim::mutating.load(std::memory_order_relaxed) == 0) [[likely]]
    return Mutation::none;
  return sim::mutation(where, operation, admitted);
}

/// Executes an instruction of the simulated machine, now or, delayed, after the thread's next one.
template <class Instruction> void execute(Mutation mutation, Instruction instruction) {
  if (mutation == Mutation::delayed) [[unlikely]] {
    sim::delay(instruction);
  } else {
    instruction();
  }
}
#endif

/// A number of a statement, with the mutations less and more.
TEGULA_HOST_DEVICE constexpr int counted(int number, Mutation mutation, int unit = 1) {
  return mutation == Mutation::more ? number + unit : mutation == Mutation::less ? number - unit : number;
}

/// What can be done to a wait for all but the latest N groups.
template <int N>
inline constexpr Mutation kWaitsForGroups = Mutation::removed | Mutation::delayed | Mutation::more |
                                            (N > 0 ? Mutation::less : Mutation::none);

/// `end`, the first index that a predicate keeps an access away from.
TEGULA_HOST_DEVICE constexpr int edge(int end, SourceLocation where = SourceLocation::current()) {
  Mutation const m =
      mutation(where, Operation::predicate, Mutation::removed | Mutation::less | Mutation::more);
  return m == Mutation::removed ? 0x7fffffff : counted(end, m);
}

}  // namespace tegula
