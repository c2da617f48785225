#pragma once

#include <cstdint>

#include "profile/access_log.hpp"
#include "profile/counters.hpp"
#include "tegula/arch/source_location.hpp"
#include "tegula/sim/limits.hpp"
#include "values/instruction.hpp"

namespace tegula::sim {

class Cluster;
class Cta;
struct Warp;

/// Holds what the accesses of warps to memory cost to what the kernel, or the caller, declares.
class AccessLimits {
 public:
  /// A cluster starts.
  void start(Cluster const& cluster);
  /// An access that was counted.
  void hold(Cta& cta, Warp const& warp, AccessLog::Record const& record,
            AccessUse const& use) const;
  /// An ldmatrix or stmatrix of `count` matrices.
  void hold(Cta& cta, Warp const& warp, Instruction instruction, int count, SourceLocation where,
            BankUse use) const;

 private:
  Limits limits_;
};

}  // namespace tegula::sim
