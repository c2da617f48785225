#pragma once

/// What a kind of machine must do; Machine, Allocation and the entry points are written on it.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "choice_key.hpp"
#include "kernel_launch.hpp"
#include "memo.hpp"
#include "problem.hpp"
#include "tegula/arch/tensor_map_description.hpp"
#include "tegula/device/family.hpp"
#include "tegula/device/gemm_plan.hpp"
#include "tegula/device/grouped_gemm.hpp"
#include "tegula/device/kernel_compiler.hpp"
#include "tegula/device/properties.hpp"
#include "tegula/device/stream.hpp"
#include "tegula/sim/machine.hpp"

namespace tegula::device {

/// The most that Backend::workspace gives.
inline constexpr std::size_t kMostWorkspaceBytes = 128 * 1024;

/// What Backend::stream_workspace gives: a counter of tiles and kMostArrivals counters of arrivals.
inline constexpr std::size_t kStreamWorkspaceBytes = kArrivalsOffset + 4 * kMostArrivals;

/// A kernel of the user's own, on a GPU.
struct LoadedUserKernel {
  /// Threads, bytes of shared memory and of the parameters, the cluster's extents, whether it is
  /// for programmatic dependent launch, whether it is cooperative.
  std::array<int, 8> form = {};
  std::function<void(Dim3 grid, void const* params, Stream stream)> launch;
};

/// Thread-safe. Failures are device_error.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string name() const = 0;
  virtual DeviceProperties properties() const = 0;
  virtual sim::Machine* simulation() { return nullptr; }
  virtual std::optional<sim::Report> last_report() const { return std::nullopt; }

  /// bytes > 0.
  virtual void* allocate(std::size_t bytes, std::string const& name) = 0;
  virtual void release(void* pointer) noexcept = 0;
  virtual void upload(void* to, void const* from, std::size_t bytes) = 0;
  virtual void download(void* to, void const* from, std::size_t bytes) = 0;
  virtual void fill(void* pointer, std::uint8_t byte, std::size_t bytes) = 0;

  /// What was chosen for problems that may come again: a choice takes longer than a launch.
  Memo<GemmKey, GemmChoice> gemm_choices;
  Memo<GemmKey, std::int64_t> gemm_workspaces;
  Memo<GroupedGemmKey, GroupedGemmChoice> grouped_gemm_choices;

  /// Global memory for one launch, aligned to 128 bytes: `bytes` zeros, which the launch leaves 0.
  /// It is never freed, and it is handed out again: launches that are in flight together may have
  /// the same. So a kernel's results may not depend on what it finds there. 0 < bytes <=
  /// kMostWorkspaceBytes. Allocates nothing on a GPU, where a stream may be capturing.
  virtual void* workspace(std::size_t bytes) = 0;

  /// Global memory that the launches of a stream have to themselves: kStreamWorkspaceBytes zeros,
  /// aligned to 128 bytes, which each launch leaves 0. Launches of one stream follow each other,
  /// and so share it; one that is being captured in a graph has its own. Never freed.
  virtual void* stream_workspace(Stream stream) = 0;

  /// Of sm_90 on, for a description that check() has passed.
  virtual TensorMap encode_tensor_map(TensorMapDescription const& description) = 0;

  virtual void* create_stream() = 0;
  virtual void destroy_stream(void* stream) noexcept = 0;
  virtual void synchronize(Stream stream) = 0;

  virtual void* create_event() = 0;
  virtual void destroy_event(void* event) noexcept = 0;
  virtual void record(void* event, Stream stream) = 0;
  virtual float milliseconds(void* begin, void* end) = 0;

  /// Queues a kernel, by the number of its configuration. `params` points to the Params of that
  /// family's kernels, which are copied.
  virtual void launch(FamilyId family, int configuration, void const* params, Stream stream) = 0;

  /// Loads what compile_source made for this device, as long as the process lives.
  virtual LoadedUserKernel load(CompiledKernel const& compiled);
};

std::shared_ptr<Backend> make_simulated_backend(sim::Options options);
/// A configuration's, by its number.
KernelLaunch const& kernel_launch(FamilyId family, int number);

// The CUDA back end: src/device/cuda/, or src/device/driver/ in a build without the toolkit.
std::shared_ptr<Backend> make_cuda_backend(int device);
int cuda_device_count();
char const* cuda_architectures();

}  // namespace tegula::device
