#include <stdexcept>
#include <string>

#include "atomic_kernels.hpp"
#include "copy_kernels.hpp"
#include "gpu_kernels.hpp"
#include "hopper_kernels.hpp"
#include "instruction_kernels.hpp"
#include "register_kernels.hpp"
#include "synchronisation_kernels.hpp"
#include "vocabulary_kernels.hpp"
#include "wgmma_kernels.hpp"

namespace tegula {
namespace {

using namespace instruction_kernels;

void check(cudaError_t status) {
  if (status != cudaSuccess)
    throw std::runtime_error(std::string("CUDA: ") + cudaGetErrorString(status));
}

#if defined(__CUDA_ARCH__)
constexpr int kArchitecture = __CUDA_ARCH__ / 10;
#else
constexpr int kArchitecture = 90;
#endif

template <class Kernel>
__global__ void __launch_bounds__(Kernel::threads, Kernel::min_ctas_per_sm)
    entry(Words const words) {
  if constexpr (kArchitecture >= Kernel::architecture) {
    extern __shared__ __align__(1024) unsigned char shared[];
    Kernel{}(words, *reinterpret_cast<typename Kernel::SharedStorage*>(shared));
  }
}

template <class Kernel> std::vector<std::uint32_t> run(std::vector<std::uint32_t> const& in) {
  std::vector<std::uint32_t> out(Kernel::out_words);
  std::uint32_t* device_in = nullptr;
  std::uint32_t* device_out = nullptr;
  check(cudaMalloc(&device_in, 4 * in.size() + 4));
  check(cudaMalloc(&device_out, 4 * out.size()));
  check(cudaMemcpy(device_in, in.data(), 4 * in.size(), cudaMemcpyHostToDevice));
  check(cudaMemset(device_out, 0, 4 * out.size()));
  Dim3 const grid = Kernel::grid();
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(grid.x, grid.y, grid.z);
  config.blockDim = dim3(Kernel::threads);
  config.dynamicSmemBytes = sizeof(typename Kernel::SharedStorage);
  cudaLaunchAttribute attributes[2] = {};
  config.attrs = attributes;
  if constexpr (requires { Kernel::cluster; }) {
    cudaLaunchAttribute& cluster = attributes[config.numAttrs++];
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = Kernel::cluster.x;
    cluster.val.clusterDim.y = Kernel::cluster.y;
    cluster.val.clusterDim.z = Kernel::cluster.z;
  }
  if constexpr (requires { Kernel::cooperative; }) {
    cudaLaunchAttribute& together = attributes[config.numAttrs++];
    together.id = cudaLaunchAttributeCooperative;
    together.val.cooperative = Kernel::cooperative;
  }
  check(cudaLaunchKernelEx(&config, entry<Kernel>, Words{device_in, device_out}));
  check(cudaMemcpy(out.data(), device_out, 4 * out.size(), cudaMemcpyDeviceToHost));
  check(cudaFree(device_in));
  check(cudaFree(device_out));
  return out;
}

template <class... Kernel>
std::vector<std::uint32_t> run_one_of(int index, std::vector<std::uint32_t> const& in,
                                      Kernels<Kernel...>) {
  constexpr std::vector<std::uint32_t> (*runs[])(std::vector<std::uint32_t> const&) = {
      &run<Kernel>...};
  return runs[index](in);
}

}  // namespace

bool has_gpu() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
}

bool has_hopper_gpu() {
  int major = 0;
  return has_gpu() &&
         cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0) == cudaSuccess &&
         major == 9;
}

std::vector<std::uint32_t> run_on_gpu(int index, std::vector<std::uint32_t> const& in) {
  return run_one_of(index, in, AllKernels{});
}

std::vector<std::uint32_t> run_vocabulary_on_gpu(int index, std::vector<std::uint32_t> const& in) {
  return run_one_of(index, in, vocabulary_kernels::AllKernels{});
}

std::vector<std::uint32_t> run_hopper_on_gpu(int index, std::vector<std::uint32_t> const& in) {
  return run_one_of(index, in, hopper_kernels::AllKernels{});
}

std::vector<std::uint32_t> run_synchronisation_on_gpu(int index,
                                                      std::vector<std::uint32_t> const& in) {
  return run_one_of(index, in, synchronisation_kernels::AllKernels{});
}

std::vector<std::uint32_t> run_atomic_on_gpu(int index, std::vector<std::uint32_t> const& in) {
  return run_one_of(index, in, atomic_kernels::AllKernels{});
}

std::vector<std::uint32_t> run_copy_on_gpu(int index, std::vector<std::uint32_t> const& in) {
  return run_one_of(index, in, copy_kernels::AllKernels{});
}

std::vector<std::uint32_t> run_registers_on_gpu(int index, std::vector<std::uint32_t> const& in) {
  return run_one_of(index, in, register_kernels::AllKernels{});
}

std::vector<std::uint32_t> run_wgmma_on_gpu(int index, std::vector<std::uint32_t> const& in) {
  return run_one_of(index, in, wgmma_kernels::AllKernels{});
}

}  // namespace tegula
