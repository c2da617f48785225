#pragma once

/// Kernels that this machine's C++ compiler makes for the simulated machine when they are first
/// used.

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "tegula/arch/dim3.hpp"
#include "tegula/sim/global_tensor.hpp"
#include "tegula/sim/machine.hpp"
#include "tegula/sim/report.hpp"

namespace tegula::device {

struct HostKernelSource {
  std::string name;                       ///< in the cache
  std::string text;                       ///< may include the library's headers
  std::string type;                       ///< the kernel, which the text defines: "::Turn"
  std::vector<std::string> include = {};  ///< folders that its own includes are looked for in
};

/// One of them, loaded. Copies are the same kernel.
class HostKernel {
 public:
  /// From the cache of kernels, or compiled and kept there. Throws device_error, with the first
  /// error of the compiler or what to install.
  explicit HostKernel(HostKernelSource const& source);

  /// Threads, bytes of shared memory and of the parameters.
  std::array<long, 3> const& form() const { return form_; }

  /// What else its text exports by that name (extern "C"); null where it does not.
  void const* find(char const* name) const;

  /// As sim::launch.
  sim::Report launch(sim::Machine& machine, Dim3 grid, void const* params,
                     std::vector<sim::GlobalTensor> const& tensors = {}) const;

  /// Whether kernels may be compiled (TEGULA_CXX is not empty) and loaded: what they call of the
  /// simulated machine must be exported by the library, or the program, that this is part of.
  static bool are_possible();

 private:
  using Entry = void (*)(sim::Machine&, Dim3, void const* params,
                         std::vector<sim::GlobalTensor> const& tensors, sim::Report&);

  std::shared_ptr<void> library_;
  std::array<long, 3> form_ = {};
  Entry entry_ = nullptr;
};

}  // namespace tegula::device
