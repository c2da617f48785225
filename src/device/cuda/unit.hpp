#pragma once

/// One configuration of a kernel compiled by nvcc. Each is instantiated in a translation unit of its own,
/// which CMake makes from attention_unit.cu.in or gemm_unit.cu.in; the tables in backend.cpp only name them.

#include <cstddef>

#include "tegula/arch/dim3.hpp"
#include "tegula/kernel/attention_config.hpp"
#include "tegula/kernel/gemm_config.hpp"

namespace tegula::device {

template <class Params> struct CudaKernel {
  void const* entry;  ///< the __global__ function, for the CUDA runtime
  int threads;
  std::size_t shared_bytes;
  Dim3 (*grid)(Params const&);
};

template <int I> CudaKernel<AttentionParams> cuda_attention();
template <int I> CudaKernel<GemmParams> cuda_gemm();

}  // namespace tegula::device
