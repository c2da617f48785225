// The simulated machine as a back end: work is done when the call returns, whatever the stream.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backend.hpp"
#include "built.hpp"
#include "driver/host_kernel.hpp"
#include "once.hpp"
#include "simulated_forms.hpp"
#include "simulated_unit.hpp"
#include "tegula/device/error.hpp"
#include "tegula/device/global_tensors.hpp"
#include "tegula/sim/tensor_map.hpp"

namespace tegula {
namespace device {
namespace {

using Clock = std::chrono::steady_clock;

/// The kernels of a family by number, gathered from its units. Those that this build lacks have no
/// `launch`, but what the host must know of them.
template <KernelFamily F> std::vector<SimulatedKernel> kernels() {
  if (configurations(F{}).size() != kBuiltIndices<F>.size())
    throw std::logic_error(
        "this program chooses among configurations whose kernels it does not have");
  std::vector<SimulatedKernel> found(kAllIndices<F>.size());
  auto const add = [&](std::vector<IndexedKernel> const& of_unit) {
    for (auto const& [index, kernel] : of_unit) {
      auto const number = std::ranges::find(kAllIndices<F>, index) - kAllIndices<F>.begin();
      found.at(static_cast<std::size_t>(number)) = kernel;
    }
  };
  [&]<int... Unit>(std::integer_sequence<int, Unit...>) {
    (add(simulated_kernels<F, Unit>()), ...);
  }
  (std::make_integer_sequence<int, kEndUnit<F>>());
  if constexpr (!kOtherIndices<F>.empty()) {
    std::size_t number = kBuiltIndices<F>.size();
    for (KernelLaunch const& form : forms_of_others<F>()) found[number++] = {form, nullptr};
  }
  return found;
}

SimulatedKernel const& kernel(FamilyId family, int number) {
  static KernelTables<SimulatedKernel> tables([]<class F>(F) { return kernels<F>(); });
  return tables.at(family, number);
}

/// A kernel that this build lacks, compiled when it is first launched.
struct LackingKernel {
  Once compiled;
  std::optional<HostKernel> kernel;
};

HostKernelSource source_of(FamilyId family, int number) {
  int index = 0;
  family.visit([&]<class F>(F) { index = kAllIndices<F>[static_cast<std::size_t>(number)]; });
  // The type's name, which reports print, is that of a built kernel (kernel_unit.cpp.in).
  return {.name = configuration_name(family, number),
          .text = fmt::format(R"(#include <type_traits>
#include "tegula/kernel/configurations.hpp"
#include "tegula/kernel/{0}.hpp"
namespace tegula {{
using Family = std::remove_const_t<decltype({0})>;
template <int I> struct {0}_kernel : Family::Kernel<Family::table[I]> {{}};
}}  // namespace tegula)",
                              to_string(family)),
          .type = fmt::format("tegula::{}_kernel<{}>", to_string(family), index)};
}

HostKernel const& lacking_kernel(FamilyId family, int number) {
  static KernelTables<LackingKernel> tables(
      []<class F>(F) { return std::vector<LackingKernel>(kAllIndices<F>.size()); });
  LackingKernel& lacking = tables.at(family, number);
  lacking.compiled([&] { lacking.kernel.emplace(source_of(family, number)); });
  return *lacking.kernel;
}

sim::Report launch_kernel(sim::Machine& machine, FamilyId family, int number, void const* params,
                          std::vector<sim::GlobalTensor> tensors) {
  SimulatedKernel const& built = kernel(family, number);
  if (built.launch != nullptr) return built.launch(machine, params, std::move(tensors));
  return lacking_kernel(family, number).launch(machine, built.grid(params), params, tensors);
}

class SimulatedBackend : public Backend {
 public:
  explicit SimulatedBackend(sim::Options options) : machine_(std::move(options)) {}

  std::string name() const override {
    return "simulated sm_" + std::to_string(properties().compute_capability);
  }
  DeviceProperties properties() const override {
    DeviceProperties properties = properties_of(machine_.options().generation);
    if (machine_.options().multiprocessors > 0)
      properties.multiprocessors = machine_.options().multiprocessors;
    if (HostKernel::are_possible()) properties.kernels = Kernels::built_preferred;
    return properties;
  }
  sim::Machine* simulation() override { return &machine_; }

  std::optional<sim::Report> last_report() const override {
    std::scoped_lock const lock(report_mutex_);
    return report_;
  }

  void* allocate(std::size_t bytes, std::string const& name) override {
    try {
      return machine_.allocate(bytes, name);
    } catch (std::bad_alloc const&) {
      throw device_error("the simulated machine has no memory for the " + std::to_string(bytes) +
                         " bytes of " + name + ".");
    }
  }
  void release(void* pointer) noexcept override { machine_.deallocate(pointer); }
  void upload(void* to, void const* from, std::size_t bytes) override {
    machine_.upload(to, from, bytes);
  }
  void download(void* to, void const* from, std::size_t bytes) override {
    machine_.download(to, from, bytes);
  }
  void fill(void* pointer, std::uint8_t byte, std::size_t bytes) override {
    machine_.fill(pointer, byte, bytes);
  }

  /// One for each size, so that an access behind it is out of bounds.
  void* workspace(std::size_t bytes) override {
    std::scoped_lock const lock(workspaces_mutex_);
    void*& workspace = workspaces_[bytes];
    if (workspace == nullptr) {
      workspace = machine_.allocate(bytes, "workspace");
      machine_.fill(workspace, 0, bytes);
    }
    return workspace;
  }

  /// Work is done when a launch returns: the launches of a thread follow each other, whatever
  /// the stream.
  void* stream_workspace(Stream) override {
    std::scoped_lock const lock(workspaces_mutex_);
    void*& workspace = thread_workspaces_[std::this_thread::get_id()];
    if (workspace == nullptr) {
      workspace = machine_.allocate(kStreamWorkspaceBytes, "stream workspace");
      machine_.fill(workspace, 0, kStreamWorkspaceBytes);
    }
    return workspace;
  }

  TensorMap encode_tensor_map(TensorMapDescription const& description) override {
    return sim::encode(description);
  }

  void* create_stream() override { return new char(0); }  // an address of its own
  void destroy_stream(void* stream) noexcept override { delete static_cast<char*>(stream); }
  void synchronize(Stream) override {}

  void* create_event() override { return new std::optional<Clock::time_point>; }
  void destroy_event(void* event) noexcept override {
    delete static_cast<std::optional<Clock::time_point>*>(event);
  }
  void record(void* event, Stream) override {
    *static_cast<std::optional<Clock::time_point>*>(event) = Clock::now();
  }
  float milliseconds(void* begin, void* end) override {
    auto const &from = *static_cast<std::optional<Clock::time_point>*>(begin),
               &to = *static_cast<std::optional<Clock::time_point>*>(end);
    if (!from || !to) throw device_error("milliseconds: an event was never recorded.");
    return std::chrono::duration<float, std::milli>(*to - *from).count();
  }

  void launch(FamilyId family, int configuration, void const* params, Stream) override {
    std::vector<sim::GlobalTensor> tensors;
    family.visit([&]<class F>(F) {
      tensors = global_tensors(kAllConfigurations<F>[static_cast<std::size_t>(configuration)],
                               *static_cast<typename F::Params const*>(params));
    });
    // What is too small, or is no memory of the machine, is found where the kernel touches it.
    std::erase_if(tensors,
                  [&](sim::GlobalTensor const& tensor) { return !machine_.holds(tensor); });
    keep(
        [&] { return launch_kernel(machine_, family, configuration, params, std::move(tensors)); });
  }

 private:
  /// Keeps the report of a launch, also of one that threw its findings.
  template <class Launch> void keep(Launch&& launch) {
    auto const set = [&](sim::Report report) {
      std::scoped_lock const lock(report_mutex_);
      report_ = std::move(report);
    };
    try {
      set(launch());
    } catch (sim::CheckError const& error) {
      set(error.report());
      throw;
    }
  }

  sim::Machine machine_;
  mutable std::mutex report_mutex_;
  std::optional<sim::Report> report_;
  std::mutex workspaces_mutex_;
  std::map<std::size_t, void*> workspaces_;  ///< by their size
  std::map<std::thread::id, void*> thread_workspaces_;
};

}  // namespace

KernelLaunch const& kernel_launch(FamilyId family, int number) { return kernel(family, number); }

std::shared_ptr<Backend> make_simulated_backend(sim::Options options) {
  return std::make_shared<SimulatedBackend>(std::move(options));
}

}  // namespace device

KernelResources resources(FamilyId family, int number) {
  device::check_configuration(family, number);
  auto const& kernel = device::kernel(family, number);
  return {kernel.threads, kernel.shared_bytes};
}

}  // namespace tegula
