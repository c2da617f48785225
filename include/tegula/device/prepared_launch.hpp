#pragma once

/// A call that is made many times with the same arguments, prepared once.

#include <functional>

#include "tegula/device/arguments.hpp"
#include "tegula/device/machine.hpp"
#include "tegula/device/stream.hpp"

namespace tegula {

/// The arguments are checked, a configuration is chosen and the kernel's parameters are made when
/// this is constructed; a call only queues the launch. Copies are the same. May be called from
/// several threads. The memory that the arguments point to must be there when it is called.
class PreparedLaunch {
 public:
  /// Throws as attention() and gemm() do (launch.hpp).
  PreparedLaunch(Machine const& machine, AttentionArguments const& arguments);
  PreparedLaunch(Machine const& machine, GemmArguments const& arguments);

  /// Throws device_error where the launch fails.
  void operator()(Stream stream = {}) const { launch_(stream); }

 private:
  std::function<void(Stream)> launch_;
};

}  // namespace tegula
