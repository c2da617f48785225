#pragma once

/// Configurations of a kernel compiled for the simulated machine. CMake makes their translation
/// units from kernel_unit.cpp.in; the tables in simulated.cpp gather what these give.

#include <utility>
#include <vector>

#include "kernel_launch.hpp"
#include "tegula/sim/launch.hpp"
#include "tegula/sim/machine.hpp"
#include "units.hpp"

namespace tegula::device {

struct SimulatedKernel : KernelLaunch {
  sim::Report (*launch)(sim::Machine&, void const* params, std::vector<sim::GlobalTensor> tensors);
};

struct IndexedKernel {
  int index;  ///< into the family's table
  SimulatedKernel kernel;
};

/// The kernels of a unit, which defines this.
template <KernelFamily F, int Unit> std::vector<IndexedKernel> simulated_kernels();

template <class Kernel> SimulatedKernel simulated_kernel_of() {
  return {kernel_launch_of<Kernel>(),
          [](sim::Machine& machine, void const* params, std::vector<sim::GlobalTensor> tensors) {
            auto const& p = *static_cast<typename Kernel::Params const*>(params);
            return sim::launch<Kernel>(machine, Kernel::grid(p), p, std::move(tensors));
          }};
}

}  // namespace tegula::device
