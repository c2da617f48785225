#pragma once

/// One configuration of a kernel compiled by nvcc. Each is instantiated in a translation unit of
/// its own, which CMake makes from kernel_unit.cu.in; the tables in backend.cpp only name them.

#include "../kernel_launch.hpp"
#include "tegula/kernel/configurations.hpp"

namespace tegula::device {

struct CudaKernel : KernelLaunch {
  void const* entry;  ///< the __global__ function, for the CUDA runtime
};

template <KernelFamily F, int Index> CudaKernel cuda_kernel();

template <class Kernel> CudaKernel cuda_kernel_of(void const* entry) {
  return {kernel_launch_of<Kernel>(), entry};
}

}  // namespace tegula::device
