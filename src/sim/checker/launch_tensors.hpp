#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "checker/global_conflicts.hpp"
#include "machine/global_memory.hpp"
#include "tegula/sim/machine.hpp"

namespace tegula::sim {

/// The allocation that holds all elements of the tensor, or null.
Allocation* allocation_of(AllocationTable const& table, GlobalTensor const& tensor);

/// The tensors that a launch describes, known to their allocations as long as this lives: findings
/// name their elements, and what the launch touches of those that it is to cover is marked.
class LaunchTensors {
 public:
  /// `checks`: whether what the launch covers is looked for. Throws std::invalid_argument for a
  /// description that is none, or of what lies in no allocation.
  LaunchTensors(KernelImage const& kernel, AllocationTable const& table, bool checks);
  ~LaunchTensors();
  LaunchTensors(LaunchTensors const&) = delete;
  LaunchTensors& operator=(LaunchTensors const&) = delete;

  /// What the launch, which is over, has not covered: a finding for each tensor. `logs` say who has
  /// touched what lies beside it; `cta_of(cluster, rank)` gives a CTA's coordinate in the grid.
  std::vector<Finding> not_covered(std::map<std::int64_t, ClusterLog> const& logs,
                                   std::function<Dim3(std::int64_t, int)> const& cta_of) const;

 private:
  struct Covered {
    GlobalTensor const* tensor;
    Allocation* memory;
  };
  struct Free {
    void operator()(void* memory) const;
  };
  std::vector<Allocation*> described_;
  std::vector<Covered> covered_;
  std::vector<std::unique_ptr<std::uint8_t, Free>> marks_;
};

}  // namespace tegula::sim
