#include "tegula/device/kernel_compiler.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <chrono>
#include <utility>

#include "../backend.hpp"
#include "../built.hpp"
#include "kernel_cache.hpp"
#include "nvrtc.hpp"
#include "tegula/device/error.hpp"

namespace tegula {
namespace device {
namespace {

/// What the kernels' arithmetic and language need, as nvcc is given it (cmake/TegulaCuda.cmake).
/// NVRTC compiles no code for the host, so that whatever a header declares is the device's. That a
/// function which refuses does not return is then not seen (warning 1305).
std::vector<std::string> options_for(std::string_view arch) {
  return {fmt::format("--gpu-architecture={}", arch), "--std=c++20",          "--fmad=false",
          "--device-as-default-execution-space",      "--diag-suppress=1305", "--ptxas-options=-v"};
}

/// What nvcc has and NVRTC lacks. The one throw of the headers (layout/refuse.hpp) is reached in
/// constant expressions alone, where it is an error; NVRTC knows no exceptions, and elsewhere it
/// would be a trap.
constexpr std::string_view kPrelude = R"(#define throw __trap(), (void)
#define __builtin_nanf(payload) __builtin_bit_cast(float, 0x7fc00000u)
#line 1
)";

/// The translation unit of a kernel: `includes` and the type are text of C++.
std::string unit(std::string_view includes, std::string_view type, std::string_view entry) {
  return fmt::format(R"({}{}
namespace tegula::compiled {{
struct Kernel : {} {{}};
template <class K> constexpr int min_ctas_per_sm() {{
  if constexpr (requires {{ K::min_ctas_per_sm; }}) return K::min_ctas_per_sm;
  return 1;
}}
}}  // namespace tegula::compiled
extern "C" __global__ void __launch_bounds__(tegula::compiled::Kernel::threads,
                                 tegula::compiled::min_ctas_per_sm<tegula::compiled::Kernel>())
    {}(__grid_constant__ tegula::compiled::Kernel::Params const params) {{
  extern __shared__ __align__(1024) unsigned char shared[];
  using Storage = tegula::compiled::Kernel::SharedStorage;
  tegula::compiled::Kernel{{}}(params, *reinterpret_cast<Storage*>(shared));
}}
)",
                     kPrelude, includes, type, entry);
}

/// The number before `what` in a log, or 0.
int number_before(std::string_view log, std::string_view what) {
  std::size_t const at = log.find(what);
  if (at == std::string_view::npos) return 0;
  std::size_t begin = at;
  while (begin > 0 && log[begin - 1] >= '0' && log[begin - 1] <= '9') --begin;
  int number = 0;
  std::from_chars(log.data() + begin, log.data() + at, number);
  return number;
}

/// What a launch must know of a kernel of the user's own, which the host does not see.
std::string form() {
  return fmt::format(R"(
namespace tegula::compiled {{
template <class K> constexpr int cluster_extent(int axis) {{
  if constexpr (requires {{ K::cluster; }})
    return axis == 0 ? K::cluster.x : axis == 1 ? K::cluster.y : K::cluster.z;
  return 1;
}}
template <class K> constexpr int is_dependent() {{
  if constexpr (requires {{ K::programmatic_dependent_launch; }})
    return K::programmatic_dependent_launch;
  return 0;
}}
template <class K> constexpr int is_cooperative() {{
  if constexpr (requires {{ K::cooperative; }}) return K::cooperative;
  return 0;
}}
}}  // namespace tegula::compiled
extern "C" __device__ int {}[8] = {{
    tegula::compiled::Kernel::threads, sizeof(tegula::compiled::Kernel::SharedStorage),
    sizeof(tegula::compiled::Kernel::Params),
    tegula::compiled::cluster_extent<tegula::compiled::Kernel>(0),
    tegula::compiled::cluster_extent<tegula::compiled::Kernel>(1),
    tegula::compiled::cluster_extent<tegula::compiled::Kernel>(2),
    tegula::compiled::is_dependent<tegula::compiled::Kernel>(),
    tegula::compiled::is_cooperative<tegula::compiled::Kernel>()}};
)",
                     kFormName);
}

/// `keyed`: what tells the source from others in the cache.
CompiledKernel compile(std::string name, std::string entry, std::string const& source,
                       std::string const& keyed, std::string_view arch,
                       std::vector<std::string> const& options) {
  auto const began = std::chrono::steady_clock::now();
  KernelCache const cache = KernelCache::of_user();
  KernelKey const key{name,
                      std::string(arch),
                      nvrtc_version(),
                      fmt::format("{}", fmt::join(options, " ")),
                      carried_headers_hash(),
                      keyed};
  CompiledKernel made{.name = std::move(name), .arch = key.arch, .entry = std::move(entry)};
  if (!cache.folder().empty()) made.path = cache.path(key);
  if (auto kept = cache.load(key)) {
    made.cubin = std::move(*kept);
    made.from_cache = true;
  } else {
    NvrtcResult result = Nvrtc::get().compile(source, made.entry + ".cu", options);
    made.cubin = std::move(result.cubin);
    made.registers = number_before(result.log, " registers");
    made.spilled_bytes = number_before(result.log, " bytes spill stores") +
                         number_before(result.log, " bytes spill loads");
    try {
      cache.store(key, made.cubin);
    } catch (device_error const& error) {
      made.not_kept = error.what();  // the kernel is there all the same
      made.path.clear();
    }
  }
  made.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return made;
}

}  // namespace
}  // namespace device

std::string arch_of(int compute_capability) {
  return fmt::format("sm_{}{}", compute_capability, compute_capability >= 90 ? "a" : "");
}

CompiledKernel compile(FamilyId family, int configuration, std::string_view arch) {
  device::check_configuration(family, configuration);
  int index = 0;
  family.visit(
      [&]<class F>(F) { index = device::kAllIndices<F>[static_cast<std::size_t>(configuration)]; });
  device::KernelLaunch const& host = device::kernel_launch(family, configuration);
  char const* const name = to_string(family);
  std::string const source = device::unit(
      fmt::format(R"(#include <type_traits>
#include "tegula/kernel/configurations.hpp"
#include "tegula/kernel/{}.hpp"
namespace tegula::compiled {{
using Family = std::remove_const_t<decltype({})>;
using Configured = Family::Kernel<Family::table[{}]>;
static_assert(Configured::threads == {} && sizeof(Configured::SharedStorage) == {} &&
                  sizeof(Configured::Params) == {},
              "the host has the kernel otherwise");
}}  // namespace tegula::compiled)",
                  name, name, index, host.threads, host.shared_bytes, host.params_bytes),
      "tegula::compiled::Configured", fmt::format("{}_{}", name, index));
  return device::compile(configuration_name(family, configuration),
                         fmt::format("{}_{}", name, index), source, source, arch,
                         device::options_for(arch));
}

CompiledKernel compile_source(std::string const& source, std::string const& type,
                              std::string_view arch, std::vector<std::string> const& include) {
  std::vector<std::string> options = device::options_for(arch);
  for (std::string const& folder : include)
    options.push_back(fmt::format("--include-path={}", folder));
  std::string const unit = device::unit(source, "::" + type, "kernel") + device::form();
  return device::compile(type, "kernel", unit, device::with_included(unit, include), arch, options);
}

std::vector<CachedKernel> cached_kernels() { return device::KernelCache::of_user().list(); }
std::string kernel_cache_folder() { return device::KernelCache::of_user().folder(); }
std::string kernel_compiler() {
  device::Nvrtc const& nvrtc = device::Nvrtc::get();
  return fmt::format("{} ({})", nvrtc.version(), nvrtc.path());
}

}  // namespace tegula
