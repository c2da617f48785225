#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "explore/dependence.hpp"

namespace tegula::sim {

/// The processes of a kernel's clusters by number, the same in every execution of an exploration.
class Processes {
 public:
  explicit Processes(ClusterShape const& shape) : shape_(shape) {}
  ClusterShape const& shape() const { return shape_; }
  /// The n-th operation in flight that the process issued.
  ProcessId operation(ProcessId issuer, std::uint32_t n);
  /// As Choices name them.
  std::uint64_t name(ProcessId process) const;
  /// None where the cluster has no such thread, warp or warpgroup.
  std::optional<ProcessId> process(std::uint64_t name);

 private:
  ClusterShape shape_;
  std::unordered_map<std::uint64_t, ProcessId> by_issue_;
  std::vector<std::uint64_t> issue_;  ///< of operations, from shape_.processes() on
};

}  // namespace tegula::sim
