#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "tegula/arch/dim3.hpp"
#include "tegula/arch/tensor_map_description.hpp"

/// The examples on a GPU.
namespace tegula::examples {

inline void check(cudaError_t status, char const* what) {
  if (status != cudaSuccess)
    throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status));
}

template <class Kernel>
__global__ void __launch_bounds__(Kernel::threads, Kernel::min_ctas_per_sm)
    entry(__grid_constant__ typename Kernel::Params const params) {
  extern __shared__ __align__(1024) unsigned char shared[];
  Kernel{}(params, *reinterpret_cast<typename Kernel::SharedStorage*>(shared));
}

/// The machine's GPU, as the problems want one. What it allocates is freed with it.
class CudaGpu {
 public:
  CudaGpu() = default;
  CudaGpu(CudaGpu const&) = delete;
  ~CudaGpu() {
    for (void* const pointer : allocated_) cudaFree(pointer);
  }

  template <class T> T* upload(std::vector<T> const& data, char const* name) {
    void* result = nullptr;
    check(cudaMalloc(&result, data.size() * sizeof(T)), name);
    allocated_.push_back(result);
    check(cudaMemcpy(result, data.data(), data.size() * sizeof(T), cudaMemcpyHostToDevice), name);
    return static_cast<T*>(result);
  }
  template <class T> std::vector<T> download(T const* data, std::size_t count) const {
    std::vector<T> result(count);
    check(cudaMemcpy(result.data(), data, count * sizeof(T), cudaMemcpyDeviceToHost), "download");
    return result;
  }
  TensorMap encode(TensorMapDescription const& d) const {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult answer{};
    check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                           cudaEnableDefault, &answer),
          "cuTensorMapEncodeTiled");
    CUtensorMapDataType const type = d.dtype == DType::bf16  ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
                                     : d.dtype == DType::f16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
                                                             : CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    cuuint64_t extents[5], strides[5];
    cuuint32_t box[5], steps[5] = {1, 1, 1, 1, 1};
    for (std::size_t i = 0; i < 5; ++i) {
      extents[i] = static_cast<cuuint64_t>(d.extents[i]),
      box[i] = static_cast<cuuint32_t>(d.box[i]);
      if (i < 4) strides[i] = static_cast<cuuint64_t>(d.strides[i]);
    }
    TensorMap result;
    CUresult const status = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function)(
        reinterpret_cast<CUtensorMap*>(&result), type, static_cast<cuuint32_t>(d.rank),
        const_cast<void*>(d.address), extents, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
        static_cast<CUtensorMapSwizzle>(d.swizzle), CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (status != CUDA_SUCCESS)
      throw std::runtime_error("cuTensorMapEncodeTiled gave CUresult " + std::to_string(status));
    return result;
  }
  template <class Kernel> void launch(Dim3 grid, typename Kernel::Params const& params) {
    constexpr int bytes = static_cast<int>(sizeof(typename Kernel::SharedStorage));
    check(cudaFuncSetAttribute(entry<Kernel>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
          "launch");
    entry<Kernel><<<dim3(grid.x, grid.y, grid.z), Kernel::threads, bytes>>>(params);
    check(cudaGetLastError(), "launch");
  }

 private:
  std::vector<void*> allocated_;
};

/// The median of 20 runs in seconds, after 5 that do not count.
template <class Run> double median_seconds(Run run) {
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "cudaEventCreate");
  check(cudaEventCreate(&end), "cudaEventCreate");
  std::vector<float> times;
  for (int turn = 0; turn < 25; ++turn) {
    check(cudaEventRecord(begin), "cudaEventRecord");
    run();
    check(cudaEventRecord(end), "cudaEventRecord");
    check(cudaEventSynchronize(end), "cudaEventSynchronize");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime");
    if (turn >= 5) times.push_back(milliseconds);
  }
  check(cudaEventDestroy(begin), "cudaEventDestroy");
  check(cudaEventDestroy(end), "cudaEventDestroy");
  std::sort(times.begin(), times.end());
  return (times[9] + times[10]) / 2e3;
}

}  // namespace tegula::examples
