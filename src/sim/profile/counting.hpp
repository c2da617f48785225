#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "machine/observers.hpp"
#include "profile/access_log.hpp"
#include "profile/counters.hpp"

namespace tegula::sim {

/// Counts what the clusters of a launch execute, by source line.
class Counting {
 public:
  /// A launch starts.
  void clear() { counters_.clear(); }
  /// A cluster starts.
  void start(Cluster const& cluster);
  std::vector<LineCounters> const& lines() const { return counters_.lines(); }

  /// The current thread executes an instruction by itself.
  void executed(Cta const& cta, Instruction instruction, SourceLocation where,
                LaneAccess const& access);
  void worked(Instruction instruction, SourceLocation where, Work const& work);
  /// The accesses of an ldmatrix or stmatrix of `count` matrices to the rows at these addresses.
  BankUse matrices_moved(Instruction instruction, SourceLocation where, int count,
                         std::uint32_t const* rows);
  /// Puts together what the warp's lanes have done since they last met. Calls visit(record, use)
  /// with each instruction.
  template <class Visit> void flush(Cta const& cta, Warp const& warp, Visit&& visit) {
    AccessLog& log = this->log(cta, warp);
    if (log.empty()) return;
    log.flush(
        [&](AccessLog::Record const& record) { visit(record, count_access(counters_, record)); });
  }

 private:
  AccessLog& log(Cta const& cta, Warp const& warp);

  CounterTable counters_;
  int warps_ = 0;                ///< of a CTA
  std::vector<AccessLog> logs_;  ///< of each warp of each CTA
};

}  // namespace tegula::sim
