// Prepared launches, and kernels compiled when they are first used.

#include <optional>
#include <string>

#include "compiled_kernels.hpp"
#include "guard.hpp"
#include "nvrtc.hpp"
#include "output.hpp"
#include "prepared.hpp"

using namespace tegula;
using namespace tegula::c;

tegula_status tegula_launch_run(tegula_launch const* launch, void* stream) {
  return guarded([&] {
    not_null("tegula_launch_run", "launch", launch);
    launch->held(Stream{stream});
  });
}

void tegula_launch_free(tegula_launch* launch) { delete launch; }

tegula_status tegula_nvrtc_folder(char const* folder) {
  return guarded([&] {
    not_null("tegula_nvrtc_folder", "folder", folder);
    device::add_nvrtc_folder(folder);
  });
}

tegula_status tegula_compile(char const* kernel, char const* arch, char** json) {
  return guarded([&] {
    not_null("tegula_compile", "kernel", kernel);
    not_null("tegula_compile", "json", json);
    std::string const code = tool::arch_or_default(
        "arch", arch != nullptr ? std::optional<std::string>(arch) : std::nullopt);
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (auto const& [family, configuration] : tool::kernels_named(kernel))
      all.push_back(tool::to_json(compile(family, configuration, code)));
    *json = as_c_text(tool::dump(all));
  });
}

tegula_status tegula_cached_kernels(char** json) {
  return guarded([&] {
    not_null("tegula_cached_kernels", "json", json);
    *json = as_c_text(tool::dump(tool::cache_json()));
  });
}
