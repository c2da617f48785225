#pragma once

#include <cstddef>

#include "tegula/sim/launch.hpp"
#include "tegula/sim/tensor_map.hpp"
#include "tma_kernels.hpp"

namespace tegula::tma_test {

/// The simulated machine as a Host of tma_checks.hpp.
class SimulatedHost {
 public:
  explicit SimulatedHost(sim::Options options = {}) : machine_(options) {}
  void* allocate(std::size_t bytes) { return machine_.allocate(bytes, "memory"); }
  void upload(void* to, void const* from, std::size_t bytes) { machine_.upload(to, from, bytes); }
  void download(void* to, void const* from, std::size_t bytes) {
    machine_.download(to, from, bytes);
  }
  void release(void* pointer) { machine_.deallocate(pointer); }
  TensorMap encode(TensorMapDescription const& description) { return sim::encode(description); }
  template <class Kernel> void launch(tma_kernels::Params const& params, int ctas) {
    launch_kernel<Kernel>(params, ctas);
  }
  template <class Kernel> void launch_kernel(typename Kernel::Params const& params, int ctas = 1) {
    report = sim::launch<Kernel>(machine_, {ctas, 1, 1}, params);
  }

  sim::Report report;

 private:
  sim::Machine machine_;
};

}  // namespace tegula::tma_test
