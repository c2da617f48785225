#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tegula/sim/machine.hpp"

/// Runs a small kernel in every order of its steps that matters: docs/machine.md, "Schedules".
namespace tegula::sim {

struct ExploreOptions {
  /// Executions after which the exploration ends, though there are more orders.
  std::int64_t max_executions = 10000;
  /// Steps of one execution, after which the machine runs it to its end in an order of its own.
  std::int64_t max_steps = 200000;
  /// 0: orders that differ little from the machine's first; else by seed, which spreads an
  /// exploration that is bounded.
  std::uint64_t seed = 0;
  /// Whether, under cluster launch control, requests may be refused though clusters wait, as the
  /// hardware may: those of a cluster from some moment on, which is a step, or never.
  bool refusals = false;
  /// What an execution has computed; read after each, and compared with the first one's.
  std::function<std::vector<std::byte>()> result;
  /// Whether orders that differ only in steps that commute are tried once. Without it all are: to
  /// test the reduction by.
  bool reduce = true;
};

struct ExploredFinding {
  Finding finding;
  Choices choices;  ///< Options::choices, to replay the first execution that has it
};

struct Exploration {
  std::string kernel;
  std::int64_t executions = 0;  ///< that were run
  std::int64_t orders = 0;      ///< different orders of the steps that do not commute, among them
  std::int64_t steps = 0;       ///< of the longest one
  bool complete = false;        ///< whether these are all there are
  /// Whether loads and stores were steps that could be ordered: they are where something was found
  /// that nothing orders.
  bool accesses = false;
  std::vector<ExploredFinding> findings;  ///< each (kind, source line, buffer) once
  std::optional<Choices> differs;  ///< the first execution whose result is not the first one's

  bool ok() const { return findings.empty() && !differs; }
  /// For people: how many orders were covered, and what was found in which.
  std::string text() const;
};

/// Calls `execute` once for each order. It brings global memory into the same state every time and
/// launches one kernel on `machine`; findings do not throw. Clusters of its grid, at most 32 CTAs,
/// are there together. Under cluster launch control there are places for
/// Options::multiprocessors of them (else two), four at most: when a cluster starts in one is a
/// step, and so is a request for a cluster that has not started. Orders that
/// differ only in steps that commute are the same (Mazurkiewicz, "Trace theory", 1986), and each is
/// run once: after each execution, every two steps of it that need not have come in their order
/// give the beginning of another one (Abdulla, Aronis, Jonsson and Sagonas, "Optimal dynamic
/// partial order reduction", POPL 2014, whose wakeup sequences these are), which is run if no
/// execution before it began so.
///
/// Steps are what synchronises: mbarriers, named barriers, the cluster's barrier, setmaxnreg, waits
/// for groups, atomics, and operations in flight that land. Loads and stores become steps, too, and
/// the exploration begins anew, where two of them conflict that no such step orders. A thread that
/// polls again what it has found unchanged waits for it to change.
///
/// Throws std::invalid_argument for a grid of more CTAs, and what `execute` throws.
Exploration explore(Machine& machine, std::function<void()> const& execute,
                    ExploreOptions const& options = {});

}  // namespace tegula::sim
