#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <type_traits>

#include "tegula/arch/tensor_map_description.hpp"
#include "tma_kernels.hpp"

/// The kernels of tma_kernels.hpp on GPU 0.
namespace tegula {

bool has_tma();

/// CUDA reported an error; after one in a kernel the process cannot use the GPU any more.
struct gpu_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class GpuHost {
 public:
  void* allocate(std::size_t bytes);
  void upload(void* to, void const* from, std::size_t bytes);
  void download(void* to, void const* from, std::size_t bytes);
  void release(void* pointer);
  TensorMap encode(TensorMapDescription const& description);
  template <class Kernel> void launch(tma_kernels::Params const& params, int ctas) {
    launch_kernel(index_of<Kernel>(tma_kernels::AllKernels{}), params, ctas);
  }
  /// What createpolicy gives for the policies that the test names.
  std::array<std::uint64_t, 6> cache_policies();

 private:
  template <class Wanted, class... Kernel>
  static constexpr int index_of(tma_kernels::Kernels<Kernel...>) {
    int index = 0;
    bool const found = ((std::is_same_v<Wanted, Kernel> || (++index, false)) || ...);
    return found ? index : throw "tma_kernels::AllKernels lacks the kernel";
  }
  void launch_kernel(int index, tma_kernels::Params const& params, int ctas);
};

}  // namespace tegula
