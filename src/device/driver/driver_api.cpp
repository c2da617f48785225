#include "driver_api.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <exception>
#include <string>
#include <variant>

#include "tegula/device/error.hpp"

namespace tegula::device::driver {
namespace {

/// The driver's functions, or why there are none.
using Loaded = std::variant<Functions, std::string>;

Loaded load() {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return fmt::format("there is no CUDA driver ({}); install NVIDIA's driver.", dlerror());
  Functions found;
  std::string missing;
  auto const take = [&](auto& function, char const* symbol) {
    function =
        reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, symbol));
    if (function == nullptr) missing = symbol;
  };
#define TEGULA_DRIVER_TAKE(name, symbol, ...) take(found.name, symbol);
  TEGULA_DRIVER_FUNCTIONS(TEGULA_DRIVER_TAKE)
#undef TEGULA_DRIVER_TAKE
  if (!missing.empty())
    return fmt::format("the CUDA driver has no {}; a driver of CUDA 12.0 or later is needed.",
                       missing);
  if (Result const result = found.init(0); result != 0) {
    char const* why = nullptr;
    if (found.error_string(result, &why) != 0) why = "an unknown error";
    return fmt::format("cuInit failed: {} (CUresult {}).", why, result);
  }
  return found;
}

}  // namespace

Functions const& functions() {
  static Loaded const loaded = load();
  if (auto const* const why = std::get_if<std::string>(&loaded)) throw device_error(*why);
  return std::get<Functions>(loaded);
}

void check(Result result, std::string_view call) {
  if (result == 0) return;
  char const *name = nullptr, *text = nullptr;
  if (functions().error_name(result, &name) != 0) name = "unknown";
  if (functions().error_string(result, &text) != 0) text = "unknown error";
  throw device_error(fmt::format("{} failed: {} ({}).", call, text, name));
}

CurrentContext::CurrentContext(Context context) {
  Context current = nullptr;
  check(functions().context_get(&current), "cuCtxGetCurrent");
  if (current == context) return;
  check(functions().context_push(context), "cuCtxPushCurrent");
  pushed_ = true;
}

CurrentContext::~CurrentContext() {
  Context popped = nullptr;
  if (pushed_) static_cast<void>(functions().context_pop(&popped));
}

}  // namespace tegula::device::driver
