// A GPU as a back end, through the CUDA runtime.

#include "../backend.hpp"

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <array>
#include <atomic>
#include <string_view>
#include <utility>
#include <vector>

#include "../built.hpp"
#include "../once.hpp"
#include "check.hpp"
#include "stream_workspaces.hpp"
#include "tegula/device/error.hpp"
#include "tegula/io/text.hpp"
#include "tensor_map.hpp"
#include "unit.hpp"

namespace tegula::device {
namespace {

/// Makes a device the calling thread's current one, and puts the caller's back at the end.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device) {
    check(cudaGetDevice(&before_), "cudaGetDevice");
    if (before_ != device) {
      check(cudaSetDevice(device), "cudaSetDevice");
      changed_ = true;
    }
  }
  ~CurrentDevice() {
    if (changed_) static_cast<void>(cudaSetDevice(before_));
  }
  CurrentDevice(CurrentDevice const&) = delete;
  CurrentDevice& operator=(CurrentDevice const&) = delete;

 private:
  int before_ = 0;
  bool changed_ = false;
};

/// A device's attribute, such as a rate in kHz; 0 where the driver does not tell.
int attribute(cudaDeviceAttr what, int device) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, what, device), "cudaDeviceGetAttribute");
  return value;
}

/// What the driver tells of a device's speed; an H100's values stand for what it does not tell.
DeviceProperties with_speed(DeviceProperties properties, int device, int l2_bytes) {
  double const clock_ghz = attribute(cudaDevAttrClockRate, device) * 1e-6;
  // Memory transfers at both edges of its clock.
  double const memory_tb_per_s = 2 * attribute(cudaDevAttrMemoryClockRate, device) * 1e-9 *
                                 attribute(cudaDevAttrGlobalMemoryBusWidth, device) / 8;
  if (clock_ghz > 0) properties.clock_ghz = clock_ghz;
  if (memory_tb_per_s > 0) properties.memory_tb_per_s = memory_tb_per_s;
  if (l2_bytes > 0) properties.l2_mb = l2_bytes * 1e-6;
  return properties;
}

/// Whether code compiled for `architectures` (CMake's names: "80", "90a", "80-real", "80;90a") runs
/// on a GPU of this compute capability: an architecture-specific one ("90a") only there, a real one
/// on those of its generation that are no older, and one with PTX on any later.
bool runs_on(std::string_view architectures, int compute_capability) {
  while (!architectures.empty()) {
    auto const end = architectures.find(';');
    std::string_view const name = architectures.substr(0, end);
    architectures.remove_prefix(end == std::string_view::npos ? architectures.size() : end + 1);
    int number = 0;
    std::size_t digits = 0;
    for (; digits < name.size() && name[digits] >= '0' && name[digits] <= '9'; ++digits)
      number = 10 * number + (name[digits] - '0');
    std::string_view const suffix = name.substr(digits);
    if (number == compute_capability) return true;
    bool const specific = suffix.starts_with('a') || suffix.starts_with('f');
    if (specific || number > compute_capability) continue;
    if (number / 10 == compute_capability / 10 || !suffix.ends_with("-real")) return true;
  }
  return false;
}

/// A kernel, which is allowed its shared memory once, before its first launch.
struct PreparedKernel {
  CudaKernel kernel;
  Once prepared;
};

/// The kernels of a family by number.
template <KernelFamily F> std::vector<PreparedKernel> kernels() {
  std::vector<PreparedKernel> all(kBuiltIndices<F>.size());
  [&]<std::size_t... N>(std::index_sequence<N...>) {
    ((all[N].kernel = cuda_kernel<F, kBuiltIndices<F>[N]>()), ...);
  }
  (std::make_index_sequence<kBuiltIndices<F>.size()>());
  return all;
}

/// The kernels on one device.
class KernelLauncher {
 public:
  void launch(FamilyId family, int configuration, void const* params, cudaStream_t stream) {
    auto& [kernel, prepared] = tables_.at(family, configuration);
    prepared([&kernel = kernel] {
      check(
          cudaFuncSetAttribute(kernel.entry, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(kernel.shared_bytes)),
          fmt::format("cudaFuncSetAttribute (to {} bytes of shared memory)", kernel.shared_bytes));
    });
    Dim3 const grid = kernel.grid(params);
    std::array<cudaLaunchAttribute, 3> attributes{};
    cudaLaunchConfig_t launch{.gridDim = extents(grid),
                              .blockDim = extents({kernel.threads, 1, 1}),
                              .dynamicSmemBytes = kernel.shared_bytes,
                              .stream = stream,
                              .attrs = attributes.data(),
                              .numAttrs = 0};
    auto const& [x, y, z] = kernel.cluster;
    if (x * y * z > 1) {
      cudaLaunchAttribute& cluster = attributes[launch.numAttrs++];
      cluster.id = cudaLaunchAttributeClusterDimension;
      cluster.val.clusterDim = {static_cast<unsigned>(x), static_cast<unsigned>(y),
                                static_cast<unsigned>(z)};
    }
    if (kernel.programmatic_dependent_launch) {
      cudaLaunchAttribute& dependent = attributes[launch.numAttrs++];
      dependent.id = cudaLaunchAttributeProgrammaticStreamSerialization;
      dependent.val.programmaticStreamSerializationAllowed = 1;
    }
    if (kernel.cooperative) {
      cudaLaunchAttribute& together = attributes[launch.numAttrs++];
      together.id = cudaLaunchAttributeCooperative;
      together.val.cooperative = 1;
    }
    void* arguments[] = {const_cast<void*>(params)};
    cudaError_t const status = cudaLaunchKernelExC(&launch, kernel.entry, arguments);
    if (status != cudaSuccess)
      check(status,
            fmt::format(
                "cudaLaunchKernelExC (grid {} x {} x {}, cluster {} x {} x {}, {} threads, {} "
                "bytes of shared memory)",
                grid.x, grid.y, grid.z, x, y, z, kernel.threads, kernel.shared_bytes));
  }

 private:
  static dim3 extents(Dim3 const& d) {
    return dim3(static_cast<unsigned>(d.x), static_cast<unsigned>(d.y), static_cast<unsigned>(d.z));
  }

  KernelTables<PreparedKernel> tables_{[]<class F>(F) { return kernels<F>(); }};
};

/// Memory for launches, in turn: by the time that one's comes again the launch is over.
class Workspaces {
 public:
  /// On the current device.
  void allocate() {
    check(cudaMalloc(&memory_, bytes), fmt::format("cudaMalloc ({} bytes for workspaces)", bytes));
    check(cudaMemset(memory_, 0, bytes), "cudaMemset");
    // other streams need not wait for it
    check(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
  }
  void* next(std::size_t wanted) {
    std::size_t const lines = (wanted + line - 1) / line;
    // One that would reach over the end is left out.
    for (;;) {
      std::size_t const first = next_.fetch_add(lines) % (bytes / line);
      if (first + lines <= bytes / line) return static_cast<char*>(memory_) + first * line;
    }
  }
  ~Workspaces() { static_cast<void>(cudaFree(memory_)); }

 private:
  static constexpr std::size_t bytes = kMostWorkspaceBytes, line = 128;  // a line of L2

  void* memory_ = nullptr;
  std::atomic<std::size_t> next_ = 0;
};

class CudaBackend : public Backend {
 public:
  explicit CudaBackend(int device) : device_(device) {
    int const count = cuda_device_count();
    if (device < 0 || device >= count)
      throw device_error(
          fmt::format("there is no GPU number {}: CUDA sees {} of them.", device, count));
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
    properties_ = with_speed({.compute_capability = 10 * properties.major + properties.minor,
                              .multiprocessors = properties.multiProcessorCount,
                              .shared_bytes = properties.sharedMemPerBlockOptin},
                             device, properties.l2CacheSize);
    int const compute_capability = properties_.compute_capability;
    name_ = fmt::format("{} (sm_{})", properties.name, compute_capability);
    if (!runs_on(TEGULA_CUDA_ARCHITECTURES, compute_capability))
      throw device_error(fmt::format(
          "{} cannot run this build's kernels, which are compiled for {}; configure with "
          "TEGULA_CUDA_ARCHITECTURES={}.",
          name_, TEGULA_CUDA_ARCHITECTURES, compute_capability));
    CurrentDevice const current(device_);
    workspaces_.allocate();
  }

  std::string name() const override { return name_; }
  DeviceProperties properties() const override { return properties_; }

  void* allocate(std::size_t bytes, std::string const& name) override {
    CurrentDevice const current(device_);
    void* pointer = nullptr;
    check(cudaMalloc(&pointer, bytes),
          fmt::format("cudaMalloc ({} for {})", io::counted(bytes, "byte"), name));
    return pointer;
  }
  void release(void* pointer) noexcept override { static_cast<void>(cudaFree(pointer)); }
  void upload(void* to, void const* from, std::size_t bytes) override {
    CurrentDevice const current(device_);
    check(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), "cudaMemcpy (to the device)");
  }
  void download(void* to, void const* from, std::size_t bytes) override {
    CurrentDevice const current(device_);
    check(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy (from the device)");
  }
  void fill(void* pointer, std::uint8_t byte, std::size_t bytes) override {
    CurrentDevice const current(device_);
    check(cudaMemset(pointer, byte, bytes), "cudaMemset");
  }

  void* workspace(std::size_t bytes) override { return workspaces_.next(bytes); }

  void* stream_workspace(Stream stream) override {
    CurrentDevice const current(device_);
    return stream_workspaces_.of(native(stream));
  }

  TensorMap encode_tensor_map(TensorMapDescription const& description) override {
    CurrentDevice const current(device_);
    return encode_by_driver(description);
  }

  void* create_stream() override {
    CurrentDevice const current(device_);
    cudaStream_t stream = nullptr;
    check(cudaStreamCreate(&stream), "cudaStreamCreate");
    return stream;
  }
  void destroy_stream(void* stream) noexcept override {
    static_cast<void>(cudaStreamDestroy(static_cast<cudaStream_t>(stream)));
  }
  void synchronize(Stream stream) override {
    CurrentDevice const current(device_);
    check(cudaStreamSynchronize(native(stream)), "cudaStreamSynchronize");
  }

  void* create_event() override {
    CurrentDevice const current(device_);
    cudaEvent_t event = nullptr;
    check(cudaEventCreate(&event), "cudaEventCreate");
    return event;
  }
  void destroy_event(void* event) noexcept override {
    static_cast<void>(cudaEventDestroy(static_cast<cudaEvent_t>(event)));
  }
  void record(void* event, Stream stream) override {
    CurrentDevice const current(device_);
    check(cudaEventRecord(static_cast<cudaEvent_t>(event), native(stream)), "cudaEventRecord");
  }
  float milliseconds(void* begin, void* end) override {
    CurrentDevice const current(device_);
    check(cudaEventSynchronize(static_cast<cudaEvent_t>(end)), "cudaEventSynchronize");
    float result = 0;
    check(cudaEventElapsedTime(&result, static_cast<cudaEvent_t>(begin),
                               static_cast<cudaEvent_t>(end)),
          "cudaEventElapsedTime");
    return result;
  }

  void launch(FamilyId family, int configuration, void const* params, Stream stream) override {
    CurrentDevice const current(device_);
    kernels_.launch(family, configuration, params, native(stream));
  }

 private:
  static cudaStream_t native(Stream stream) { return static_cast<cudaStream_t>(stream.native); }

  int device_;
  DeviceProperties properties_;
  std::string name_;
  Workspaces workspaces_;
  StreamWorkspaces stream_workspaces_;
  KernelLauncher kernels_;
};

}  // namespace

std::shared_ptr<Backend> make_cuda_backend(int device) {
  return std::make_shared<CudaBackend>(device);
}

int cuda_device_count() {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
  static_cast<void>(cudaGetLastError());
  return 0;  // no driver, or no GPU
}

char const* cuda_architectures() { return TEGULA_CUDA_ARCHITECTURES; }

}  // namespace tegula::device
