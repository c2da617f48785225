#include <cuda_runtime.h>

#include <string>

#include "tma_gpu_kernels.hpp"

namespace tegula {
namespace {

using namespace tma_kernels;

void check(cudaError_t status) {
  if (status != cudaSuccess) throw gpu_error(std::string("CUDA: ") + cudaGetErrorString(status));
}

template <class Kernel>
__global__ void __launch_bounds__(Kernel::threads) entry(__grid_constant__ Params const params) {
  extern __shared__ __align__(1024) unsigned char shared[];
  Kernel{}(params, *reinterpret_cast<SharedStorage*>(shared));
}

template <class Kernel> void launch(Params const& params, int ctas) {
  check(cudaFuncSetAttribute(entry<Kernel>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             sizeof(SharedStorage)));
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {1, 1, 1};
  if constexpr (requires { Kernel::cluster; }) cluster.val.clusterDim.x = Kernel::cluster.x;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(ctas));
  config.blockDim = dim3(Kernel::threads);
  config.dynamicSmemBytes = sizeof(SharedStorage);
  config.attrs = &cluster;
  config.numAttrs = 1;
  check(cudaLaunchKernelEx(&config, entry<Kernel>, params));
  check(cudaDeviceSynchronize());
}

template <class... Kernel>
void launch_one_of(int index, Params const& params, int ctas, Kernels<Kernel...>) {
  constexpr void (*launches[])(Params const&, int) = {&launch<Kernel>...};
  launches[index](params, ctas);
}

/// What createpolicy gives.
__global__ void policies(std::uint64_t* out) {
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(out[0]));
  asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(out[1]));
  asm volatile("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(out[2]));
  asm volatile("createpolicy.fractional.L2::evict_unchanged.b64 %0, 1.0;" : "=l"(out[3]));
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 0.5;" : "=l"(out[4]));
  asm volatile("createpolicy.fractional.L2::evict_last.L2::evict_first.b64 %0, 0.25;"
               : "=l"(out[5]));
}

}  // namespace

bool has_tma() {
  int count = 0, major = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && count > 0 &&
         cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0) == cudaSuccess &&
         major == 9;
}

void* GpuHost::allocate(std::size_t bytes) {
  void* pointer = nullptr;
  check(cudaMalloc(&pointer, bytes));
  return pointer;
}
void GpuHost::upload(void* to, void const* from, std::size_t bytes) {
  check(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice));
}
void GpuHost::download(void* to, void const* from, std::size_t bytes) {
  check(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost));
}
void GpuHost::release(void* pointer) { static_cast<void>(cudaFree(pointer)); }
void GpuHost::launch_kernel(int index, Params const& params, int ctas) {
  launch_one_of(index, params, ctas, AllKernels{});
}

std::array<std::uint64_t, 6> GpuHost::cache_policies() {
  std::array<std::uint64_t, 6> result{};
  auto* const out = static_cast<std::uint64_t*>(allocate(sizeof(result)));
  policies<<<1, 1>>>(out);
  download(result.data(), out, sizeof(result));
  release(out);
  return result;
}

}  // namespace tegula
