#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "explore/explorer.hpp"
#include "tegula/sim/explore.hpp"

namespace tegula::sim {

/// An exploration under way: which orders are still to be tried.
class Exploring {
 public:
  Exploring(Machine& machine, std::function<void()> const& execute, ExploreOptions const& options);
  Exploration run();

  // Called by the machine.

  /// A launch begins: what decides its order. Throws std::invalid_argument where it is the
  /// execution's second.
  Explorer& begin(ClusterShape const& shape);
  /// It is over.
  void end(Report const& report) { report_ = report; }

 private:
  /// The beginning of an order that is to be tried.
  struct Beginning {
    std::vector<ProcessId> follow;
    std::vector<std::uint64_t> ends;  ///< its phases and the last step of each process, by hash
  };

  void execute(Beginning const& beginning);
  void add_reversals(Explorer const& explorer);
  void add_alternatives(Explorer const& explorer, std::size_t from);
  void add(Beginning beginning);
  bool begun(Beginning const& beginning) const;
  void remember(Explorer const& explorer);
  void take_findings(Explorer const& explorer);
  Beginning take();
  void start_anew();

  Machine& machine_;
  std::function<void()> const& execute_;
  ExploreOptions const& options_;
  Exploration exploration_;
  std::unique_ptr<Processes> processes_;
  std::optional<Explorer> explorer_;
  std::vector<ProcessId> follow_;
  Report report_;
  std::deque<Beginning> queue_;
  std::size_t queued_steps_ = 0;
  bool bounded_ = false;
  std::unordered_set<std::uint64_t> seen_;  ///< beginnings
  std::unordered_set<std::uint64_t> orders_;
  /// The executions, by number, that have a step.
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> executions_with_;
  std::optional<std::vector<std::byte>> first_result_;
  std::uint64_t random_state_;
};

}  // namespace tegula::sim
