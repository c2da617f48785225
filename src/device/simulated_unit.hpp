#pragma once

/// One configuration of a kernel compiled for the simulated machine. Each is instantiated in a translation
/// unit of its own, which CMake makes from kernel_unit.cpp.in; the tables in simulated.cpp only name them.

#include <cstddef>
#include <vector>

#include "family.hpp"
#include "tegula/sim/machine.hpp"

namespace tegula::device {

struct SimulatedKernel {
  int threads;
  std::size_t shared_bytes;
  sim::Report (*launch)(sim::Machine&, void const* params, std::vector<sim::GlobalTensor> tensors);
};

template <Family F, int Configuration> SimulatedKernel simulated_kernel();

}  // namespace tegula::device
