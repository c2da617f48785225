#include "tegula/device/user_kernel.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <memory>
#include <string_view>

#include "../backend.hpp"
#include "host_compiler.hpp"
#include "kernel_cache.hpp"
#include "nvrtc.hpp"
#include "tegula/device/error.hpp"
#include "tegula/device/kernel_compiler.hpp"

namespace tegula {
namespace device {
namespace {

/// As the library itself is compiled, so that a kernel's arithmetic is one.
std::vector<std::string> const kOptions = {"-std=c++20",        "-O2", "-fPIC", "-shared", "-g1",
                                           "-ffp-contract=off", "-w"};

/// The translation unit for the simulated machine.
std::string unit(KernelSource const& source) {
  return fmt::format(R"(#include "tegula/macros.hpp"
#include "tegula/sim/launch.hpp"
#line 1 "{}"
{}
namespace {{
using Kernel = ::{};
}}
extern "C" long tegula_kernel_form[3] = {{Kernel::threads, sizeof(Kernel::SharedStorage), sizeof(Kernel::Params)}};
extern "C" void tegula_kernel_launch(tegula::sim::Machine& machine, tegula::Dim3 grid,
                                     void const* params, tegula::sim::Report& report) {{
  // What the machine throws passes through the kernel's frames, and is of the library's C++
  // runtime. This one's, which cleans up those frames, is ready once it has thrown something.
  try {{
    throw 0;
  }} catch (int) {{
  }}
  report = tegula::sim::launch<Kernel>(machine, grid, *static_cast<Kernel::Params const*>(params));
}}
)",
                     source.file, source.text, source.type);
}

/// A shared library in memory, as long as something of it is used.
class Library {
 public:
  explicit Library(std::string const& bytes) {
    int const file = memfd_create("tegula kernel", MFD_CLOEXEC);
    std::size_t done = 0;
    while (file >= 0 && done < bytes.size()) {
      auto const written = ::write(file, bytes.data() + done, bytes.size() - done);
      if (written <= 0) break;
      done += static_cast<std::size_t>(written);
    }
    std::string const path = path_of(file);
    if (done == bytes.size()) handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    std::string const why = handle_ == nullptr && done == bytes.size() ? dlerror() : "no memory";
    if (file >= 0) close(file);
    if (handle_ == nullptr)
      throw device_error(fmt::format("the compiled kernel cannot be loaded: {}.", why));
  }
  ~Library() { dlclose(handle_); }
  Library(Library const&) = delete;
  Library& operator=(Library const&) = delete;

  void* symbol(char const* name) const {
    void* const found = dlsym(handle_, name);
    if (found == nullptr) throw device_error(fmt::format("the compiled kernel has no {}.", name));
    return found;
  }

 private:
  /// A path of an open file that no other library had: the dynamic linker takes libraries of one
  /// path for one, and numbers of files come again. A slash more, or a dot, changes nothing else.
  static std::string path_of(int file) {
    static std::atomic<unsigned> libraries = 0;
    std::string path = "/proc/self/fd";
    for (unsigned number = ++libraries; number != 0; number /= 2)
      path += number % 2 == 0 ? "/" : "/.";
    return fmt::format("{}/{}", path, file);
  }

  void* handle_ = nullptr;
};

/// The kernel's calls of the simulated machine are this library's functions, also where the
/// library itself was loaded for its own sake.
void offer_own_symbols() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void const*>(&offer_own_symbols), &info) != 0)
    static_cast<void>(dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL));
}

std::string compiled_for_host(KernelSource const& source) {
  HostCompiler const& compiler = HostCompiler::get();
  KernelCache const cache = KernelCache::of_user();
  std::string const text = unit(source);
  KernelKey const key{
      source.type,
      "host",
      compiler.version(),
      fmt::format("{} {}", fmt::join(kOptions, " "), fmt::join(source.include, " ")),
      carried_headers_hash(),
      with_included(text, source.include)};
  if (auto kept = cache.load(key)) return std::move(*kept);
  std::string made = compiler.compile(text, kOptions, source.include);
  try {
    cache.store(key, made);
  } catch (device_error const&) {
    // The kernel is there all the same.
  }
  return made;
}

}  // namespace
}  // namespace device

struct UserKernelLoader {
  /// `form`: threads, bytes of shared memory and of the parameters.
  template <class Number> static void set_form(UserKernel& kernel, Number const* form) {
    kernel.threads_ = static_cast<int>(form[0]);
    kernel.shared_bytes_ = static_cast<std::size_t>(form[1]);
    kernel.params_bytes_ = static_cast<std::size_t>(form[2]);
  }

  static void for_host(UserKernel& kernel, Machine const& machine, KernelSource const& source) {
    std::string const bytes = device::compiled_for_host(source);
    device::offer_own_symbols();
    auto const library = std::make_shared<device::Library>(bytes);
    set_form(kernel, static_cast<long const*>(library->symbol("tegula_kernel_form")));
    auto* const entry = reinterpret_cast<void (*)(sim::Machine&, Dim3, void const*, sim::Report&)>(
        library->symbol("tegula_kernel_launch"));
    kernel.launch_ = [machine, library, entry](Dim3 grid, void const* params, Stream) {
      sim::Report report;
      entry(*machine.simulation(), grid, params, report);
      return std::optional<sim::Report>(std::move(report));
    };
  }

  static void for_gpu(UserKernel& kernel, Machine const& machine, KernelSource const& source) {
    std::string const text = fmt::format("#line 1 \"{}\"\n{}", source.file, source.text);
    CompiledKernel const compiled =
        compile_source(text, source.type, arch_of(machine.compute_capability()), source.include);
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
