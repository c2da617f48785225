#include <stdexcept>
#include <string>

#include "gpu_kernels.hpp"
#include "instruction_kernels.hpp"

namespace tegula {
namespace {

using namespace instruction_kernels;

void check(cudaError_t status) {
  if (status != cudaSuccess) throw std::runtime_error(std::string("CUDA: ") + cudaGetErrorString(status));
}

template <class Kernel> __global__ void __launch_bounds__(Kernel::threads) entry(Words const words) {
  extern __shared__ __align__(1024) unsigned char shared[];
  Kernel{}(words, *reinterpret_cast<typename Kernel::SharedStorage*>(shared));
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
  entry<Kernel><<<dim3(grid.x, grid.y, grid.z), Kernel::threads, sizeof(typename Kernel::SharedStorage)>>>(
      {device_in, device_out});
  check(cudaGetLastError());
  check(cudaMemcpy(out.data(), device_out, 4 * out.size(), cudaMemcpyDeviceToHost));
  check(cudaFree(device_in));
  check(cudaFree(device_out));
  return out;
}

template <class... Kernel>
std::vector<std::uint32_t> run_one_of(int index, std::vector<std::uint32_t> const& in, Kernels<Kernel...>) {
  constexpr std::vector<std::uint32_t> (*runs[])(std::vector<std::uint32_t> const&) = {&run<Kernel>...};
  return runs[index](in);
}

}  // namespace

bool has_gpu() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
}

std::vector<std::uint32_t> run_on_gpu(int index, std::vector<std::uint32_t> const& in) {
  return run_one_of(index, in, AllKernels{});
}

}  // namespace tegula
