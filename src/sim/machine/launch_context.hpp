#pragma once

#include "machine/global_memory.hpp"
#include "tegula/sim/machine.hpp"

namespace tegula::sim {

/// Lets clusters that run on several host threads pass a point in the order of their indices, so
/// that what they do there (atomics on global memory) does not depend on the host.
class TurnKeeper;
/// Lets those that are there together (of a cooperative launch, or under cluster launch control)
/// run one at a time.
class Baton;
/// The clusters that wait for room, under cluster launch control.
class PendingClusters;

/// What the clusters of one launch share.
struct LaunchContext {
  KernelImage const* kernel;
  Dim3 grid;
  Options const* options;
  AllocationTable const* global;
  TurnKeeper* turns;
  Baton* baton;              ///< null: the clusters do not run together
  PendingClusters* pending;  ///< null: the launch is not under cluster launch control
  bool stepped;              ///< an observer decides who runs, step by step
};

/// Coordinate in the grid of the CTA with the given rank in a cluster; clusters are numbered with x
/// fastest, and so are the CTAs of each.
inline Dim3 cta_index(LaunchContext const& launch, std::int64_t cluster, int rank) {
  Dim3 const extents = launch.kernel->cluster;
  Dim3 const clusters{launch.grid.x / extents.x, launch.grid.y / extents.y,
                      launch.grid.z / extents.z};
  int const x = static_cast<int>(cluster % clusters.x);
  int const y = static_cast<int>(cluster / clusters.x % clusters.y);
  int const z = static_cast<int>(cluster / clusters.x / clusters.y);
  return {x * extents.x + rank % extents.x, y * extents.y + rank / extents.x % extents.y,
          z * extents.z + rank / extents.x / extents.y};
}

}  // namespace tegula::sim
