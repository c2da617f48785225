#pragma once

#include <cstdio>
#include <exception>
#include <vector>

#include "tegula/sim/machine.hpp"
#include "tegula/sim/mutation.hpp"
#include "tegula/sim/report.hpp"
#include "thorough.hpp"

namespace tegula {

/// What mutants of a kernel were not found.
struct Survivors {
  int count = 0;  ///< mutants that were run
  std::vector<Operation> survivors;
};

/// Removes every fence, wait, arrival and commit of tensor memory's and shared memory's pipelines
/// from a kernel, one at a time: run(options, report) runs it, writes the report where it is not
/// null, and gives the result. A mutant is found where that throws, or gives another result. Where
/// the test is not to be thorough, one mutant in `n`.
template <class Run> Survivors survivors_of(Run run, int n = 1) {
  sim::Report report;
  auto const expected = run(sim::Options{.list_marked = true}, &report);
  Survivors mutants;
  int number = 0;
  for (sim::MarkedStatement const& statement : report.marked) {
    switch (statement.operation) {
      case Operation::tcgen05_wait:
      case Operation::tcgen05_fence:
      case Operation::tcgen05_commit:
      case Operation::mbarrier_wait:
      case Operation::mbarrier_arrive:
      case Operation::fence_proxy_async:
      case Operation::bulk_wait_group_read:
        break;
      default:
        continue;
    }
    if (!chosen(number++, n)) continue;
    ++mutants.count;
    try {
      sim::Options const options{.mutant = sim::Mutant{statement.where.file, statement.where.line,
                                                       statement.operation, Mutation::removed}};
      if (run(options, nullptr) != expected) continue;
    } catch (std::exception const&) {
      continue;
    }
    mutants.survivors.push_back(statement.operation);
    std::printf("%s:%d\n", statement.where.file, statement.where.line);
  }
  return mutants;
}

}  // namespace tegula
