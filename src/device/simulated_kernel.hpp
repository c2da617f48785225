#pragma once

/// Included by the units only: it brings the kernels in.

#include "simulated_unit.hpp"
#include "tegula/sim/launch.hpp"

namespace tegula::device {

template <class Kernel> SimulatedKernel<typename Kernel::Params> simulated_kernel() {
  return {Kernel::threads, sizeof(typename Kernel::SharedStorage),
          [](sim::Machine& machine, typename Kernel::Params const& params) {
            return sim::launch<Kernel>(machine, Kernel::grid(params), params);
          }};
}

}  // namespace tegula::device
