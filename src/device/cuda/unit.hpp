#pragma once

/// One configuration of a kernel compiled by nvcc. Each is instantiated in a translation unit of
/// its own, which CMake makes from kernel_unit.cu.in; the tables in backend.cpp only name them.

#include <cstddef>

#include "tegula/arch/dim3.hpp"
#include "tegula/kernel/configurations.hpp"

namespace tegula::device {

struct CudaKernel {
  void const* entry;  ///< the __global__ function, for the CUDA runtime
  int threads;
  std::size_t shared_bytes;
  Dim3 cluster;
  /// by griddepcontrol_wait: it may be started before those before it have finished
  bool programmatic_dependent_launch;
  bool cooperative;  ///< all its CTAs are resident at once, or the launch is refused
  Dim3 (*grid)(void const* params);
};

template <KernelFamily F, int Index> CudaKernel cuda_kernel();

template <class Kernel> CudaKernel cuda_kernel_of(void const* entry) {
  CudaKernel kernel{.entry = entry,
                    .threads = Kernel::threads,
                    .shared_bytes = sizeof(typename Kernel::SharedStorage),
                    .cluster = {1, 1, 1},
                    .programmatic_dependent_launch = false,
                    .cooperative = false,
                    .grid = [](void const* params) {
                      return Kernel::grid(*static_cast<typename Kernel::Params const*>(params));
                    }};
  if constexpr (requires { Kernel::cluster; }) kernel.cluster = Kernel::cluster;
  if constexpr (requires { Kernel::programmatic_dependent_launch; })
    kernel.programmatic_dependent_launch = Kernel::programmatic_dependent_launch;
  if constexpr (requires { Kernel::cooperative; }) kernel.cooperative = Kernel::cooperative;
  return kernel;
}

}  // namespace tegula::device
