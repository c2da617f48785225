#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "tegula/sim/mutation.hpp"
#include "test_machine.hpp"

/// What holds of a kernel of sm_100 at every schedule, and of its mutants.
namespace tegula {

/// Launches a kernel on a simulated Blackwell: the bytes of its result.
using Sm100Run = std::function<std::vector<std::uint8_t>(Machine const&)>;

/// Clean, and the same bits, whenever operations land and whoever runs; every tile multiplied once.
inline void expect_the_same_at_every_schedule(Sm100Run const& run, std::uint64_t seeds,
                                              int multiprocessors = 0) {
  auto const multiply_adds = [](Machine const& machine) {
    return machine.last_report()->total.fused_multiply_adds;
  };
  Machine const first = blackwell({.multiprocessors = multiprocessors});
  std::vector<std::uint8_t> const expected = run(first);
  using sim::Completion, sim::Interleaving;
  for (auto const completion : {Completion::last, Completion::first, Completion::random}) {
    for (auto const interleaving :
         {Interleaving::round_robin, Interleaving::random, Interleaving::one_warp_behind}) {
      for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        Machine const machine = blackwell({.completion = completion,
                                           .interleaving = interleaving,
                                           .seed = seed,
                                           .multiprocessors = multiprocessors});
        EXPECT_EQ(run(machine), expected)
            << "completion " << to_string(completion) << ", interleaving "
            << to_string(interleaving) << ", seed " << seed;
        EXPECT_EQ(multiply_adds(machine), multiply_adds(first));
      }
    }
  }
}

/// What orders tensor memory is needed: without it the checker finds something, or the result is
/// wrong. The same of a commit that tells one CTA of a pair less, and of every operation in `more`.
inline void expect_mutants_found(Sm100Run const& run, int least,
                                 std::vector<Operation> const& more = {}) {
  Machine const lists = blackwell({.multiprocessors = 1, .list_marked = true});
  std::vector<std::uint8_t> const expected = run(lists);
  sim::Report const report = *lists.last_report();
  std::vector<Operation> operations = {Operation::tcgen05_wait,
                                       Operation::tcgen05_fence,
                                       Operation::tcgen05_commit,
                                       Operation::mbarrier_wait,
                                       Operation::mbarrier_arrive,
                                       Operation::mbarrier_arrive_cluster,
                                       Operation::mbarrier_arrive_expect_tx};
  operations.insert(operations.end(), more.begin(), more.end());
  int mutants = 0;
  for (sim::MarkedStatement const& statement : report.marked) {
    if (std::ranges::find(operations, statement.operation) == operations.end()) continue;
    for (Mutation const mutation : {Mutation::removed, Mutation::less}) {
      bool const of_commit = statement.operation == Operation::tcgen05_commit;
      if (mutation == Mutation::less && !of_commit) continue;
      if ((statement.admitted & mutation) == Mutation::none) continue;
      ++mutants;
      bool found = false;
      try {
        Machine const machine =
            blackwell({.multiprocessors = 1,
                       .mutant = sim::Mutant{statement.where.file, statement.where.line,
                                             statement.operation, mutation}});
        found = run(machine) != expected;
      } catch (std::exception const&) {
        found = true;
      }
      EXPECT_TRUE(found) << statement.where.file << ":" << statement.where.line << ": "
                         << to_string(statement.operation) << " " << to_string(mutation);
    }
  }
  EXPECT_GE(mutants, least);
}

}  // namespace tegula
