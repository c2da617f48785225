#pragma once

/// The machine that kernels run on, chosen at run time: a GPU or a simulated one. Host code that
/// holds a `Machine`, allocates through it and launches on it is the same source for both.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "tegula/device/error.hpp"
#include "tegula/device/properties.hpp"
#include "tegula/device/stream.hpp"
#include "tegula/sim/machine.hpp"

namespace tegula {

namespace device {
class Backend;
}

/// The GPU generation that is simulated.
using Arch = sim::Generation;

/// A stream that lives as long as this object; usable wherever a Stream is.
class OwnedStream {
 public:
  operator Stream() const { return {handle_.get()}; }

 private:
  friend class Machine;
  explicit OwnedStream(std::shared_ptr<void> handle) : handle_(std::move(handle)) {}
  std::shared_ptr<void> handle_;
};

/// A point in a stream's work, for timing.
class Event {
 public:
  /// Marks the point that `stream` has been given work up to. Can be called again.
  void record(Stream stream = {});
  /// Milliseconds between two recorded points of one machine: the GPU's own clock, the host's
  /// for a simulated machine. Waits until `end` is reached. Throws device_error where one was
  /// never recorded.
  friend float milliseconds(Event const& begin, Event const& end);

 private:
  friend class Machine;
  Event(std::shared_ptr<device::Backend> backend, std::shared_ptr<void> handle)
      : backend_(std::move(backend)), handle_(std::move(handle)) {}
  std::shared_ptr<device::Backend> backend_;
  std::shared_ptr<void> handle_;
};

float milliseconds(Event const& begin, Event const& end);

/// A handle: copies are the same machine, and what was made on it keeps it alive. All functions may
/// be called from several threads, as may the entry points of launch.hpp; launches on one simulated
/// machine take turns. A Buffer may be uploaded to and downloaded from by one thread at a time, and
/// not while a launch uses it. simulation()->options() is not locked: change options while no other
/// thread uses the machine.
class Machine {
 public:
  /// GPU number `device`, as CUDA counts them. Throws device_error where there is no such GPU, or
  /// no kernels for it: a build with TEGULA_CUDA has compiled them for some architectures, another
  /// compiles them when they are first used, by NVRTC.
  static Machine cuda(int device = 0);
  /// A simulated GPU of the given generation (options.generation is set to it).
  static Machine simulated(Arch arch = Arch::sm90, sim::Options options = {});
  /// The first GPU if one can be used, else a simulated one.
  static Machine best(Arch arch = Arch::sm90, sim::Options options = {});
  /// "sim", "cuda", "cuda:1" or "auto" (best); the other arguments are those of a simulated
  /// machine. Throws argument_error for another name.
  static Machine from_name(std::string_view name, Arch arch = Arch::sm90,
                           sim::Options options = {});

  /// For people: "NVIDIA H100 80GB HBM3 (sm_90)", "simulated sm_90".
  std::string name() const;
  /// 80 for sm_80, 90 for sm_90, ...
  int compute_capability() const;
  /// Streaming multiprocessors; a simulated machine has as many as its model, an A100's 108 or an
  /// H100's 132 (or sim::Options::multiprocessors), for what depends on the number.
  int multiprocessors() const;
  /// What the choice of a configuration asks of the device.
  DeviceProperties properties() const;
  bool is_simulated() const { return simulation() != nullptr; }
  /// The simulated machine, for its options and its own functions; null on a GPU.
  sim::Machine* simulation() const;
  /// What the last launch on a simulated machine did, whichever thread launched it: threads that
  /// each want their own need machines of their own. Nothing on a GPU, or before the first launch.
  std::optional<sim::Report> last_report() const;

  OwnedStream create_stream() const;
  Event create_event() const;
  /// Waits until the stream's work is done. Throws device_error where that work failed.
  void synchronize(Stream stream = {}) const;

  device::Backend& backend() const { return *backend_; }
  std::shared_ptr<device::Backend> const& shared_backend() const { return backend_; }

 private:
  explicit Machine(std::shared_ptr<device::Backend> backend) : backend_(std::move(backend)) {}
  std::shared_ptr<device::Backend> backend_;
};

/// The GPUs that CUDA sees; 0 where there is no driver.
int cuda_device_count();
/// The architectures that this build's CUDA kernels are compiled for, as CMake names them ("90a",
/// or "80;90a"); empty where they are compiled when first used (kernel_compiler.hpp).
std::string_view cuda_architectures();

}  // namespace tegula
