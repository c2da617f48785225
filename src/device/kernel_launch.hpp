#pragma once

/// What the host must know of a kernel to launch it. It follows from the kernel's type, whichever
/// compiler reads it.

#include <cstddef>

#include "tegula/arch/dim3.hpp"

namespace tegula::device {

struct KernelLaunch {
  int threads;
  std::size_t shared_bytes, params_bytes;
  Dim3 cluster;
  /// by griddepcontrol_wait: it may be started before those before it have finished
  bool programmatic_dependent_launch;
  bool cooperative;  ///< all its CTAs are resident at once, or the launch is refused
  Dim3 (*grid)(void const* params);
};

template <class Kernel> KernelLaunch kernel_launch_of() {
  KernelLaunch launch{.threads = Kernel::threads,
                      .shared_bytes = sizeof(typename Kernel::SharedStorage),
                      .params_bytes = sizeof(typename Kernel::Params),
                      .cluster = {1, 1, 1},
                      .programmatic_dependent_launch = false,
                      .cooperative = false,
                      .grid = [](void const* params) {
                        return Kernel::grid(*static_cast<typename Kernel::Params const*>(params));
                      }};
  if constexpr (requires { Kernel::cluster; }) launch.cluster = Kernel::cluster;
  if constexpr (requires { Kernel::programmatic_dependent_launch; })
    launch.programmatic_dependent_launch = Kernel::programmatic_dependent_launch;
  if constexpr (requires { Kernel::cooperative; }) launch.cooperative = Kernel::cooperative;
  return launch;
}

}  // namespace tegula::device
