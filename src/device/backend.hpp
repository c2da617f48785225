#pragma once

/// What a kind of machine must do; Machine, Allocation and the entry points are written on it.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "family.hpp"
#include "tegula/arch/tensor_map_description.hpp"
#include "tegula/device/stream.hpp"
#include "tegula/pipeline/lockstep_barrier.hpp"
#include "tegula/sim/machine.hpp"

namespace tegula::device {

/// Thread-safe. Failures are device_error.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string name() const = 0;
  virtual int compute_capability() const = 0;
  virtual int multiprocessors() const = 0;
  virtual sim::Machine* simulation() { return nullptr; }
  virtual std::optional<sim::Report> last_report() const { return std::nullopt; }

  /// bytes > 0.
  virtual void* allocate(std::size_t bytes, std::string const& name) = 0;
  virtual void release(void* pointer) noexcept = 0;
  virtual void upload(void* to, void const* from, std::size_t bytes) = 0;
  virtual void download(void* to, void const* from, std::size_t bytes) = 0;
  virtual void fill(void* pointer, std::uint8_t byte, std::size_t bytes) = 0;

  /// For one launch (LockstepBarrier), which finds them 0; may be null, and then its workers do not meet.
  virtual LockstepCounters* lockstep_counters() { return nullptr; }

  /// Of sm_90 on, for a description that check() has passed.
  virtual TensorMap encode_tensor_map(TensorMapDescription const& description) = 0;

  virtual void* create_stream() = 0;
  virtual void destroy_stream(void* stream) noexcept = 0;
  virtual void synchronize(Stream stream) = 0;

  virtual void* create_event() = 0;
  virtual void destroy_event(void* event) noexcept = 0;
  virtual void record(void* event, Stream stream) = 0;
  virtual float milliseconds(void* begin, void* end) = 0;

  /// Queues a kernel of a table. `params` points to the Params of that family's kernels, which are copied.
  virtual void launch(Family family, int configuration, void const* params, Stream stream) = 0;
};

std::shared_ptr<Backend> make_simulated_backend(sim::Options options);

// The CUDA back end: src/device/cuda/, or cuda_absent.cpp in a build without it.
std::shared_ptr<Backend> make_cuda_backend(int device);
int cuda_device_count();
char const* cuda_architectures();

}  // namespace tegula::device
