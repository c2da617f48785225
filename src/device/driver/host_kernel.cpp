#include "host_kernel.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "host_compiler.hpp"
#include "kernel_cache.hpp"
#include "nvrtc.hpp"
#include "tegula/device/error.hpp"
#include "tegula/sim/tensor_map.hpp"

namespace tegula::device {
namespace {

/// As the library itself is compiled, so that a kernel's arithmetic is one.
std::vector<std::string> const kOptions = {"-std=c++20",        "-O2", "-fPIC", "-shared", "-g1",
                                           "-ffp-contract=off", "-w"};

std::string unit(HostKernelSource const& source) {
  return fmt::format(R"(#include "tegula/macros.hpp"
#include "tegula/sim/launch.hpp"
{}
namespace tegula::compiled {{
using Kernel = {};
}}
extern "C" long tegula_kernel_form[3] = {{tegula::compiled::Kernel::threads,
                                         sizeof(tegula::compiled::Kernel::SharedStorage),
                                         sizeof(tegula::compiled::Kernel::Params)}};
extern "C" void tegula_kernel_launch(tegula::sim::Machine& machine, tegula::Dim3 grid, void const* params,
                                     std::vector<tegula::sim::GlobalTensor> const& tensors,
                                     tegula::sim::Report& report) {{
  // What the machine throws passes through the kernel's frames, and is of the library's C++
  // runtime. This one's, which cleans up those frames, is ready once it has thrown something.
  try {{
    throw 0;
  }} catch (int) {{
  }}
  using tegula::compiled::Kernel;
  report = tegula::sim::launch<Kernel>(machine, grid, *static_cast<Kernel::Params const*>(params), tensors);
}}
)",
                     source.text, source.type);
}

std::string compiled(HostKernelSource const& source) {
  HostCompiler const compiler = HostCompiler::get();
  KernelCache const cache = KernelCache::of_user();
  std::string const text = unit(source);
  KernelKey const key{
      source.name,
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

/// A path of an open file that no other library had: the dynamic linker takes libraries of one
/// path for one, and numbers of files come again. A slash more, or a dot, changes nothing else.
std::string path_of(int file) {
  static std::atomic<unsigned> libraries = 0;
  std::string path = "/proc/self/fd";
  for (unsigned number = ++libraries; number != 0; number /= 2)
    path += number % 2 == 0 ? "/" : "/.";
  return fmt::format("{}/{}", path, file);
}

/// A shared library, loaded from memory.
std::shared_ptr<void> load(std::string const& bytes) {
  int const file = memfd_create("tegula kernel", MFD_CLOEXEC);
  std::size_t done = 0;
  while (file >= 0 && done < bytes.size()) {
    auto const written = ::write(file, bytes.data() + done, bytes.size() - done);
    if (written <= 0) break;
    done += static_cast<std::size_t>(written);
  }
  std::string const path = path_of(file);
  void* const handle = done == bytes.size() ? dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  std::string const why = handle == nullptr && done == bytes.size() ? dlerror() : "no memory";
  if (file >= 0) close(file);
  if (handle == nullptr)
    throw device_error(fmt::format("the compiled kernel cannot be loaded: {}.", why));
  return {handle, [](void* library) { dlclose(library); }};
}

void* symbol(void* library, char const* name) {
  void* const found = dlsym(library, name);
  if (found == nullptr) throw device_error(fmt::format("the compiled kernel has no {}.", name));
  return found;
}

/// The kernel's calls of the simulated machine are this library's functions, also where the
/// library itself was loaded for its own sake.
void offer_own_symbols() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void const*>(&offer_own_symbols), &info) != 0)
    static_cast<void>(dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL));
}

}  // namespace

bool HostKernel::are_possible() {
  char const* const chosen = std::getenv("TEGULA_CXX");
  if (chosen != nullptr && *chosen == '\0') return false;
  auto const* const function = reinterpret_cast<void const*>(&sim::encode);
  Dl_info info;
  return dladdr(function, &info) != 0 && info.dli_saddr == function;
}

HostKernel::HostKernel(HostKernelSource const& source) {
  std::string const bytes = compiled(source);
  offer_own_symbols();
  library_ = load(bytes);
  std::copy_n(static_cast<long const*>(symbol(library_.get(), "tegula_kernel_form")), form_.size(),
              form_.begin());
  entry_ = reinterpret_cast<Entry>(symbol(library_.get(), "tegula_kernel_launch"));
}

void const* HostKernel::find(char const* name) const { return dlsym(library_.get(), name); }

sim::Report HostKernel::launch(sim::Machine& machine, Dim3 grid, void const* params,
                               std::vector<sim::GlobalTensor> const& tensors) const {
  sim::Report report;
  entry_(machine, grid, params, tensors, report);
  return report;
}

}  // namespace tegula::device
