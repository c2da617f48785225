#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "checker/global_order.hpp"
#include "checker/global_shadow.hpp"
#include "machine/global_memory.hpp"
#include "tegula/sim/report.hpp"

namespace tegula::sim {

/// What one cluster did to global memory, once it is done.
struct ClusterLog {
  std::int64_t cluster = 0;
  std::vector<GlobalSite> sites;
  std::vector<GlobalRows> rows;
  std::vector<Releases> foreigns;       ///< by GlobalSite::foreign: releases of other clusters
  std::vector<Releases> covers;         ///< by GlobalRows::cover: releases of its own
  std::vector<std::vector<Seen>> seen;  ///< by GlobalSite::seen
  std::vector<ClusterOrder::Acquire> acquires;
  std::vector<ClusterOrder::Observed> observed;
};

/// The data races between the clusters of a launch, each pair of source lines once for each
/// allocation, for the first pair of clusters that has it. `logs` are sorted by cluster.
/// `cta_of(cluster, rank)` gives a CTA's coordinate in the grid.
std::vector<Finding> conflicts_between_clusters(
    std::vector<ClusterLog> const& logs, GlobalOrder const& order,
    AllocationTable const& allocations, std::function<Dim3(std::int64_t, int)> const& cta_of);

/// "reads", "writes", "adds to"
char const* verb(GlobalAccess access, Instruction instruction);

}  // namespace tegula::sim
