#include "tegula/device/user_kernel.hpp"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

#include "../backend.hpp"
#include "host_kernel.hpp"
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

  static void for_host(UserKernel& kernel, Machine const& machine, KernelSource const& source) {
    device::HostKernel const compiled({.name = source.type,
                                       .text = with_place(source),
                                       .type = "::" + source.type,
                                       .include = source.include});
    set_form(kernel, compiled.form().data());
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
