#include "nvrtc.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "first_error.hpp"
#include "kernel_cache.hpp"
#include "tegula/device/error.hpp"

namespace tegula::device {

/// nvrtc.h's, of the versions that are looked for: an nvrtcResult is an int, 0 is success.
struct Nvrtc::Functions {
  using Program = struct ProgramObject*;
  int (*version)(int*, int*);
  char const* (*error)(int);
  int (*create)(Program*, char const*, char const*, int, char const* const*, char const* const*);
  int (*destroy)(Program*);
  int (*compile)(Program, int, char const* const*);
  int (*log_size)(Program, std::size_t*);
  int (*log)(Program, char*);
  int (*cubin_size)(Program, std::size_t*);
  int (*cubin)(Program, char*);
};

namespace {

/// Version 13's: that of 12.9 finds constants of the tensors' layouts otherwise, and refuses GEMMs.
constexpr char const* kName = "libnvrtc.so.13";

std::mutex folders_mutex;
std::vector<std::string>& folders() {
  static std::vector<std::string> all;
  return all;
}

/// Where NVRTC is looked for, in order; a bare name is the dynamic linker's to find, which knows
/// those that are loaded already.
std::vector<std::string> candidates() {
  if (char const* const chosen = std::getenv("TEGULA_NVRTC")) return {chosen};
  std::vector<std::string> all = {kName};
  {
    std::scoped_lock const lock(folders_mutex);
    for (std::string const& folder : folders()) all.push_back(fmt::format("{}/{}", folder, kName));
  }
  if (char const* const toolkit = std::getenv("CUDA_HOME"))
    all.push_back(fmt::format("{}/lib64/{}", toolkit, kName));
  all.push_back(fmt::format("/usr/local/cuda/lib64/{}", kName));
  return all;
}

/// What tells whether the same file would be loaded as before: every place that is looked at, with
/// the size and the age of what is there. The dynamic linker's places are the folders of
/// LD_LIBRARY_PATH, and those of its cache.
std::string identity() {
  std::string text;
  auto const add = [&](std::filesystem::path const& path) {
    std::error_code none;
    auto const bytes = std::filesystem::file_size(path, none);
    if (none) return;
    auto const written = std::filesystem::last_write_time(path, none).time_since_epoch().count();
    text += fmt::format("{} {} {}\n", path.string(), bytes, written);
  };
  for (std::string const& candidate : candidates()) {
    if (candidate.find('/') != std::string::npos) {
      add(candidate);
      continue;
    }
    char const* const set = std::getenv("LD_LIBRARY_PATH");
    std::istringstream folders(set != nullptr ? set : "");
    for (std::string folder; std::getline(folders, folder, ':');)
      add(std::filesystem::path(folder) / candidate);
    add("/etc/ld.so.cache");
  }
  return text;
}

/// Whether one of the candidates is loaded already, by PyTorch or by this library.
bool is_loaded() {
  return std::ranges::any_of(candidates(), [](std::string const& path) {
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD);
    if (library != nullptr) dlclose(library);
    return library != nullptr;
  });
}

/// The first that there is: its path and its handle.
std::pair<std::string, void*> find_library() {
  for (std::string const& path : candidates())
    if (void* const library =
            path.empty() ? nullptr : dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL))  // of "" itself
      return {path, library};
  char const* const chosen = std::getenv("TEGULA_NVRTC");
  if (chosen != nullptr)
    throw device_error(
        fmt::format("TEGULA_NVRTC is {}, which cannot be loaded ({}); it must be the path of "
                    "a libnvrtc.so.13.",
                    *chosen == '\0' ? "empty" : chosen, *chosen == '\0' ? "no path" : dlerror()));
  throw device_error(
      "NVRTC 13, which compiles kernels when they are first used, was not found; install it by 'pip "
      "install nvidia-cuda-nvrtc', with PyTorch for CUDA 13 or with the CUDA toolkit 13, or set "
      "TEGULA_NVRTC to the path of its libnvrtc.so.13.");
}

}  // namespace

void add_nvrtc_folder(std::string folder) {
  std::scoped_lock const lock(folders_mutex);
  folders().push_back(std::move(folder));
}

Nvrtc::Nvrtc(std::string path, void* library) : path_(std::move(path)) {
  auto const found = std::make_unique<Functions>();
  auto const take = [&](auto& function, char const* symbol) {
    function =
        reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, symbol));
    if (function == nullptr)
      throw device_error(fmt::format("{} has no {}; NVRTC 13 is needed.", path_, symbol));
  };
  take(found->version, "nvrtcVersion");
  take(found->error, "nvrtcGetErrorString");
  take(found->create, "nvrtcCreateProgram");
  take(found->destroy, "nvrtcDestroyProgram");
  take(found->compile, "nvrtcCompileProgram");
  take(found->log_size, "nvrtcGetProgramLogSize");
  take(found->log, "nvrtcGetProgramLog");
  take(found->cubin_size, "nvrtcGetCUBINSize");
  take(found->cubin, "nvrtcGetCUBIN");
  int major = 0, minor = 0;
  if (found->version(&major, &minor) != 0 || major < 13)
    throw device_error(
        fmt::format("{} is of version {}.{}; NVRTC 13 is needed.", path_, major, minor));
  version_ = fmt::format("NVRTC {}.{}", major, minor);
  static Functions kept;
  kept = *found;
  functions_ = &kept;
}

Nvrtc const& Nvrtc::get() {
  static Nvrtc const compiler = [] {
    auto [path, library] = find_library();
    return Nvrtc(std::move(path), library);
  }();
  return compiler;
}

std::string nvrtc_version() {
  if (is_loaded()) return Nvrtc::get().version();
  KernelCache const cache = KernelCache::of_user();
  // A note, not a kernel: it is of no architecture.
  KernelKey const key = {.name = "NVRTC's version", .compiler = identity()};
  if (auto noted = cache.load(key)) return *noted;
  std::string const version = Nvrtc::get().version();
  try {
    cache.store(key, version);
  } catch (device_error const&) {
    // It is asked again.
  }
  return version;
}

NvrtcResult Nvrtc::compile(std::string const& source, std::string const& name,
                           std::vector<std::string> const& options) const {
  Functions const& nvrtc = *functions_;
  auto const check = [&](int result, char const* call) {
    if (result != 0) throw device_error(fmt::format("{} failed: {}.", call, nvrtc.error(result)));
  };
  std::vector<char const*> texts, names, flags;
  for (auto const& [header, text] : carried_headers()) {
    names.push_back(header);
    texts.push_back(text);
  }
  for (std::string const& option : options) flags.push_back(option.c_str());
  Functions::Program program = nullptr;
  check(nvrtc.create(&program, source.c_str(), name.c_str(), static_cast<int>(names.size()),
                     texts.data(), names.data()),
        "nvrtcCreateProgram");
  auto const destroy = [&](Functions::Program p) { static_cast<void>(nvrtc.destroy(&p)); };
  std::unique_ptr<std::remove_pointer_t<Functions::Program>, decltype(destroy)> const held(program,
                                                                                           destroy);
  int const result = nvrtc.compile(program, static_cast<int>(flags.size()), flags.data());
  std::size_t size = 0;
  NvrtcResult made;
  check(nvrtc.log_size(program, &size), "nvrtcGetProgramLogSize");
  made.log.resize(size);
  check(nvrtc.log(program, made.log.data()), "nvrtcGetProgramLog");
  // Parts of it end in a zero each, and the first of these would end the sentence.
  std::replace(made.log.begin(), made.log.end(), '\0', '\n');
  if (result != 0)
    throw device_error(fmt::format("{} did not compile {} ({}): {}", version_, name,
                                   nvrtc.error(result), first_error(made.log)));
  check(nvrtc.cubin_size(program, &size), "nvrtcGetCUBINSize");
  made.cubin.resize(size);
  check(nvrtc.cubin(program, made.cubin.data()), "nvrtcGetCUBIN");
  return made;
}

}  // namespace tegula::device
