#pragma once

#include "global_memory.hpp"
#include "tegula/sim/machine.hpp"

namespace tegula::sim {

/// Lets clusters that run on several host threads pass a point in the order of their indices, so that what
/// they do there (atomics on global memory) does not depend on the host.
class TurnKeeper;
class MutationRun;

/// What the clusters of one launch share.
struct LaunchContext {
  KernelImage const* kernel;
  Dim3 grid;
  Options const* options;
  AllocationTable const* global;
  TurnKeeper* turns;
  MutationRun* mutation;  ///< null where nothing is mutated or listed
};

}  // namespace tegula::sim
