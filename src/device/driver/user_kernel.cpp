#include "tegula/device/user_kernel.hpp"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "../backend.hpp"
#include "host_kernel.hpp"
#include "params_members.hpp"
#include "tegula/device/error.hpp"
#include "tegula/device/kernel_compiler.hpp"

namespace tegula {

struct UserKernelLoader {
  /// The text, whose lines are those of its file.
  static std::string with_place(KernelSource const& source) {
    return fmt::format("#line 1 \"{}\"\n{}", source.file, source.text);
  }

  /// `form`: threads, bytes of shared memory and of the parameters.
  template <class Number> static void set_form(UserKernel& kernel, Number const* form) {
    kernel.threads_ = static_cast<int>(form[0]);
    kernel.shared_bytes_ = static_cast<std::size_t>(form[1]);
    kernel.params_bytes_ = static_cast<std::size_t>(form[2]);
  }

  /// With what tells the members of its Params, but where that does not compile.
  static device::HostKernel compiled_for_host(KernelSource const& source) {
    device::HostKernelSource of_host{.name = source.type,
                                     .text = with_place(source),
                                     .type = "::" + source.type,
                                     .include = source.include};
    std::string const alone = of_host.text;
    of_host.text += device::params_members_text(of_host.type);
    try {
      return device::HostKernel(of_host);
    } catch (device_error const& error) {
      if (std::string_view(error.what()).find(device::kMembersFile) == std::string_view::npos)
        throw;
    }
    of_host.text = alone;
    return device::HostKernel(of_host);
  }

  static void for_host(UserKernel& kernel, Machine const& machine, KernelSource const& source) {
    device::HostKernel const compiled = compiled_for_host(source);
    set_form(kernel, compiled.form().data());
    kernel.members_ = device::params_members(compiled);
    kernel.launch_ = [machine, compiled](Dim3 grid, void const* params, Stream) {
      return std::optional(compiled.launch(*machine.simulation(), grid, params));
    };
  }

  static void for_gpu(UserKernel& kernel, Machine const& machine, KernelSource const& source) {
    CompiledKernel const compiled = compile_source(
        with_place(source), source.type, arch_of(machine.compute_capability()), source.include);
    device::LoadedUserKernel loaded = machine.backend().load(compiled);
    set_form(kernel, loaded.form.data());
    kernel.launch_ = [machine, launch = std::move(loaded.launch)](Dim3 grid, void const* params,
                                                                  Stream stream) {
      launch(grid, params, stream);
      return std::optional<sim::Report>();
    };
  }
};

UserKernel::UserKernel(Machine const& machine, KernelSource const& source) {
  if (machine.is_simulated())
    UserKernelLoader::for_host(*this, machine, source);
  else
    UserKernelLoader::for_gpu(*this, machine, source);
}

std::optional<sim::Report> UserKernel::operator()(Dim3 grid, void const* params,
                                                  Stream stream) const {
  return launch_(grid, params, stream);
}

}  // namespace tegula
