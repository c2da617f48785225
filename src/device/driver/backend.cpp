// A GPU as a back end, through the driver alone; its kernels are compiled when they are first used.

#include "../backend.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <memory>
#include <vector>

#include "../built.hpp"
#include "../once.hpp"
#include "driver_api.hpp"
#include "kernel_cache.hpp"
#include "nvrtc.hpp"
#include "tegula/device/error.hpp"
#include "tegula/device/kernel_compiler.hpp"
#include "tegula/io/text.hpp"
#include "tensor_map.hpp"
#include "workspaces.hpp"

namespace tegula::device {
namespace {

using namespace driver;

StreamHandle native(Stream stream) { return static_cast<StreamHandle>(stream.native); }
Address address(void const* pointer) { return reinterpret_cast<Address>(pointer); }

/// A kernel on a device, which is compiled and loaded before its first launch.
struct LoadedKernel {
  Function function = nullptr;
  Once loaded;
};

/// The kernels on one device.
class LoadedKernels {
 public:
  void launch(FamilyId family, int number, int compute_capability, void const* params,
              StreamHandle stream) {
    LoadedKernel& kernel = tables_.at(family, number);
    KernelLaunch const& form = kernel_launch(family, number);
    kernel.loaded([&] {
      CompiledKernel const compiled = compile(family, number, arch_of(compute_capability));
      kernel.function = entry_of(load_module(compiled), compiled, form);
    });
    queue(kernel.function, form, form.grid(params), params, stream);
  }

  static void queue(Function function, KernelLaunch const& form, Dim3 grid, void const* params,
                    StreamHandle stream) {
    std::array<LaunchAttribute, 3> attributes{};
    LaunchConfig config{.grid_x = static_cast<unsigned>(grid.x),
                        .grid_y = static_cast<unsigned>(grid.y),
                        .grid_z = static_cast<unsigned>(grid.z),
                        .block_x = static_cast<unsigned>(form.threads),
                        .block_y = 1,
                        .block_z = 1,
                        .shared_bytes = static_cast<unsigned>(form.shared_bytes),
                        .stream = stream,
                        .attributes = attributes.data(),
                        .attribute_count = 0};
    auto const add = [&](int id, unsigned x, unsigned y = 0, unsigned z = 0) {
      attributes[config.attribute_count++] = {.id = id, .value = {x, y, z}};
    };
    auto const& [x, y, z] = form.cluster;
    if (x * y * z > 1)
      add(kClusterDimension, static_cast<unsigned>(x), static_cast<unsigned>(y),
          static_cast<unsigned>(z));
    if (form.programmatic_dependent_launch) add(kProgrammaticSerialization, 1);
    if (form.cooperative) add(kCooperative, 1);
    void* arguments[] = {const_cast<void*>(params)};
    Result const result = functions().launch(&config, function, arguments, nullptr);
    if (result != 0)
      check(result, fmt::format("cuLaunchKernelEx (grid {} x {} x {}, cluster {} x {} x {}, {} "
                                "threads, {} bytes of shared memory)",
                                grid.x, grid.y, grid.z, x, y, z, form.threads, form.shared_bytes));
  }

  static Module load_module(CompiledKernel const& compiled) {
    Module module = nullptr;
    check(functions().module_load(&module, compiled.cubin.data()), "cuModuleLoadData");
    return module;
  }

  static Function entry_of(Module module, CompiledKernel const& compiled,
                           KernelLaunch const& form) {
    Functions const& cuda = functions();
    Function function = nullptr;
    check(cuda.module_function(&function, module, compiled.entry.c_str()), "cuModuleGetFunction");
    check(cuda.function_set(function, kMaxDynamicSharedBytes, static_cast<int>(form.shared_bytes)),
          fmt::format("cuFuncSetAttribute (to {} bytes of shared memory)", form.shared_bytes));
    return function;
  }

 private:
  KernelTables<LoadedKernel> tables_{
      []<class F>(F) { return std::vector<LoadedKernel>(kAllIndices<F>.size()); }};
};

class DriverBackend : public Backend {
 public:
  explicit DriverBackend(int number) {
    Functions const& cuda = functions();
    int count = 0;
    check(cuda.device_count(&count), "cuDeviceGetCount");
    if (number < 0 || number >= count)
      throw device_error(
          fmt::format("there is no GPU number {}: CUDA sees {} of them.", number, count));
    Device device = 0;
    check(cuda.device_get(&device, number), "cuDeviceGet");
    auto const attribute = [&](int id) {
      int value = 0;
      check(cuda.device_attribute(&value, id, device), "cuDeviceGetAttribute");
      return value;
    };
    properties_ = {.compute_capability =
                       10 * attribute(kComputeCapabilityMajor) + attribute(kComputeCapabilityMinor),
                   .multiprocessors = attribute(kMultiprocessors),
                   .shared_bytes = static_cast<std::size_t>(attribute(kSharedBytesOptIn)),
                   .kernels = Kernels::all};
    std::array<char, 256> name{};
    check(cuda.device_name(name.data(), static_cast<int>(name.size()), device), "cuDeviceGetName");
    name_ = fmt::format("{} (sm_{})", name.data(), properties_.compute_capability);
    static_cast<void>(nvrtc_version());  // throws where no kernel could be compiled
    check(cuda.primary_context(&context_, device), "cuDevicePrimaryCtxRetain");
    CurrentContext const current(context_);
    workspaces_.allocate();
  }

  std::string name() const override { return name_; }
  DeviceProperties properties() const override { return properties_; }

  void* allocate(std::size_t bytes, std::string const& name) override {
    CurrentContext const current(context_);
    Address pointer = 0;
    check(functions().allocate(&pointer, bytes),
          fmt::format("cuMemAlloc ({} for {})", io::counted(bytes, "byte"), name));
    return reinterpret_cast<void*>(pointer);
  }
  void release(void* pointer) noexcept override {
    try {
      CurrentContext const current(context_);
      static_cast<void>(functions().release(address(pointer)));
    } catch (std::exception const&) {
      // The context is gone, and the memory with it.
    }
  }
  void upload(void* to, void const* from, std::size_t bytes) override {
    CurrentContext const current(context_);
    check(functions().upload(address(to), from, bytes), "cuMemcpyHtoD");
  }
  void download(void* to, void const* from, std::size_t bytes) override {
    CurrentContext const current(context_);
    check(functions().download(to, address(from), bytes), "cuMemcpyDtoH");
  }
  void fill(void* pointer, std::uint8_t byte, std::size_t bytes) override {
    CurrentContext const current(context_);
    check(functions().fill(address(pointer), byte, bytes), "cuMemsetD8");
  }

  void* workspace(std::size_t bytes) override { return workspaces_.next(bytes); }

  void* stream_workspace(Stream stream) override {
    CurrentContext const current(context_);
    return stream_workspaces_.of(native(stream));
  }

  TensorMap encode_tensor_map(TensorMapDescription const& description) override {
    CurrentContext const current(context_);
    return encode(description);
  }

  void* create_stream() override {
    CurrentContext const current(context_);
    StreamHandle stream = nullptr;
    check(functions().stream_create(&stream, 0), "cuStreamCreate");
    return stream;
  }
  void destroy_stream(void* stream) noexcept override {
    static_cast<void>(functions().stream_destroy(static_cast<StreamHandle>(stream)));
  }
  void synchronize(Stream stream) override {
    CurrentContext const current(context_);
    check(functions().stream_synchronize(native(stream)), "cuStreamSynchronize");
  }

  void* create_event() override {
    CurrentContext const current(context_);
    EventHandle event = nullptr;
    check(functions().event_create(&event, 0), "cuEventCreate");
    return event;
  }
  void destroy_event(void* event) noexcept override {
    static_cast<void>(functions().event_destroy(static_cast<EventHandle>(event)));
  }
  void record(void* event, Stream stream) override {
    CurrentContext const current(context_);
    check(functions().event_record(static_cast<EventHandle>(event), native(stream)),
          "cuEventRecord");
  }
  float milliseconds(void* begin, void* end) override {
    CurrentContext const current(context_);
    check(functions().event_synchronize(static_cast<EventHandle>(end)), "cuEventSynchronize");
    float result = 0;
    check(functions().event_milliseconds(&result, static_cast<EventHandle>(begin),
                                         static_cast<EventHandle>(end)),
          "cuEventElapsedTime");
    return result;
  }

  void launch(FamilyId family, int configuration, void const* params, Stream stream) override {
    CurrentContext const current(context_);
    kernels_.launch(family, configuration, properties_.compute_capability, params, native(stream));
  }

  LoadedUserKernel load(CompiledKernel const& compiled) override {
    CurrentContext const current(context_);
    Module const module = LoadedKernels::load_module(compiled);
    Address form_address = 0;
    std::size_t form_bytes = 0;
    LoadedUserKernel loaded;
    check(functions().module_global(&form_address, &form_bytes, module, kFormName),
          "cuModuleGetGlobal");
    check(functions().download(loaded.form.data(), form_address,
                               std::min(form_bytes, sizeof loaded.form)),
          "cuMemcpyDtoH");
    auto const [threads, shared_bytes, params_bytes, x, y, z, dependent, cooperative] = loaded.form;
    KernelLaunch const form{.threads = threads,
                            .shared_bytes = static_cast<std::size_t>(shared_bytes),
                            .params_bytes = static_cast<std::size_t>(params_bytes),
                            .cluster = {x, y, z},
                            .programmatic_dependent_launch = dependent != 0,
                            .cooperative = cooperative != 0,
                            .grid = nullptr};
    Function const function = LoadedKernels::entry_of(module, compiled, form);
    loaded.launch = [context = context_, function, form](Dim3 grid, void const* params,
                                                         Stream stream) {
      CurrentContext const made_current(context);
      LoadedKernels::queue(function, form, grid, params, native(stream));
    };
    return loaded;
  }

 private:
  Context context_ = nullptr;  ///< the device's primary one, which the CUDA runtime uses too
  DeviceProperties properties_;
  std::string name_;
  Workspaces workspaces_;
  StreamWorkspaces stream_workspaces_;
  LoadedKernels kernels_;
};

}  // namespace

std::shared_ptr<Backend> make_cuda_backend(int device) {
  return std::make_shared<DriverBackend>(device);
}

int cuda_device_count() {
  int count = 0;
  try {
    check(functions().device_count(&count), "cuDeviceGetCount");
  } catch (device_error const&) {
    return 0;  // no driver, or no GPU
  }
  return count;
}

char const* cuda_architectures() { return ""; }

}  // namespace tegula::device
