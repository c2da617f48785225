#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "checker/global_conflicts.hpp"
#include "tegula/sim/machine.hpp"

/// Launches whose CTAs are all resident at once, and those that would have to be.
namespace tegula::sim {

/// Throws std::invalid_argument where the simulated GPU would not hold the CTAs of the grid all at
/// once, as CUDA refuses such a cooperative launch; and where they are more threads than this
/// machine can run together.
void check_cooperative(KernelImage const& kernel, Dim3 grid, Options const& options);

/// By cluster, the global memory that its threads read again and again, in vain, when it was ended.
using StuckClusters = std::map<std::int64_t, void const*>;

/// Where a cluster after such a one changes what that one waited for, the deadlock says so.
/// Clusters are started in no order, and not before there is room for them. `cta_of(cluster, rank)`
/// gives a CTA's coordinate in the grid.
void name_who_had_not_started(StuckClusters const& stuck,
                              std::map<std::int64_t, ClusterLog> const& logs,
                              std::map<std::int64_t, std::vector<Finding>>& findings,
                              std::function<Dim3(std::int64_t, int)> const& cta_of);

}  // namespace tegula::sim
