#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <memory>

#include "commands.hpp"
#include "compiled_kernels.hpp"
#include "output.hpp"
#include "tegula/device/error.hpp"
#include "tegula/device/machine.hpp"
#include "tegula/io/text.hpp"

namespace tegula::tool {

using nlohmann::ordered_json;

std::vector<NamedKernel> kernels_named(std::string const& text) {
  std::vector<NamedKernel> exact, longer;
  Families::for_each([&](auto family) {
    for (int i = 0; i < static_cast<int>(configurations(family, Kernels::all).size()); ++i) {
      std::string const name = configuration_name(family, i);
      if (name == text) exact.push_back({family, i});
      if (!text.empty() && name.starts_with(text + " ")) longer.push_back({family, i});
    }
  });
  if (exact.empty() && longer.empty())
    throw argument_error(fmt::format(
        "no kernel is named {}, or begins so; 'tegula info' lists them.", io::in_quotes(text)));
  return exact.empty() ? longer : exact;
}

std::string arch_or_default(char const* name, std::optional<std::string> const& arch) {
  if (!arch) return arch_of(cuda_device_count() > 0 ? Machine::cuda().compute_capability() : 90);
  auto const digit = [](unsigned char c) { return std::isdigit(c) != 0; };
  std::string number = arch->starts_with("sm_") ? arch->substr(3) : "";
  if (number.ends_with('a') || number.ends_with('f')) number.pop_back();
  if (number.size() < 2 || number.size() > 3 || !std::ranges::all_of(number, digit))
    throw argument_error(
        fmt::format("{} is {}; it must be an architecture that NVRTC knows, as sm_80 or sm_90a.",
                    name, io::in_quotes(*arch)));
  return *arch;
}

ordered_json to_json(CompiledKernel const& kernel) {
  return {{"name", kernel.name},
          {"arch", kernel.arch},
          {"entry", kernel.entry},
          {"path", kernel.path},
          {"from_cache", kernel.from_cache},
          {"seconds", kernel.seconds},
          {"registers", kernel.registers},
          {"spilled_bytes", kernel.spilled_bytes},
          {"bytes", kernel.cubin.size()}};
}

ordered_json cache_json() {
  ordered_json result = {{"folder", kernel_cache_folder()}};
  try {
    result["compiler"] = kernel_compiler();
  } catch (device_error const& error) {
    result["no_compiler"] = error.what();
  }
  result["kernels"] = ordered_json::array();
  for (CachedKernel const& kernel : cached_kernels())
    result["kernels"].push_back({{"name", kernel.name},
                                 {"arch", kernel.arch},
                                 {"compiler", kernel.compiler},
                                 {"bytes", kernel.bytes},
                                 {"path", kernel.path}});
  return result;
}

namespace {

struct Options {
  std::string config;
  std::optional<std::string> arch;
  bool json = false;
};

std::string line_of(CompiledKernel const& kernel) {
  std::string const how = kernel.from_cache ? "cached" : io::counted(kernel.registers, "register");
  return fmt::format("{:7.3f} s  {:<14}{} for {}\n", kernel.seconds, how, kernel.name, kernel.arch);
}

/// compile(), with --arch in front of why it does not, where it was said.
CompiledKernel compile_for(std::optional<std::string> const& said, FamilyId family,
                           int configuration, std::string const& arch) {
  try {
    return compile(family, configuration, arch);
  } catch (device_error const& error) {
    if (!said) throw;
    throw device_error(fmt::format("--arch {}: {}", *said, error.what()));
  }
}

/// kernels_named(), with the argument in front of why there are none.
std::vector<NamedKernel> kernels_asked_for(std::string const& config) {
  try {
    return kernels_named(config);
  } catch (argument_error const& error) {
    throw argument_error(fmt::format("CONFIG: {}", error.what()));
  }
}

void run(Options const& options) {
  std::string const arch = arch_or_default("--arch", options.arch);
  ordered_json all = ordered_json::array();
  for (auto const& [family, configuration] : kernels_asked_for(options.config)) {
    CompiledKernel const kernel = compile_for(options.arch, family, configuration, arch);
    if (!kernel.not_kept.empty()) throw device_error(kernel.not_kept);
    if (options.json) {
      all.push_back(to_json(kernel));
    } else {
      print("{}", line_of(kernel));
    }
  }
  if (options.json) print("{}\n", dump(all));
}

}  // namespace

void add_compile_command(Command const& app) {
  auto const options = std::make_shared<Options>();
  Command const command =
      app.add_command("compile", "Compile kernels for a GPU ahead of time, into the kernel cache");
  command.footer(
      "Needs NVRTC, and no GPU.\n\n"
      "Examples:\n"
      "  tegula compile 'gemm_sm90 bf16->bf16'\n"
      "  tegula compile attention_sm90 --arch sm_90a --json");
  command
      .add_option(
          "CONFIG", options->config,
          "the name of a kernel, as `tegula info` prints it, or its first words: all that begin so")
      .required();
  command.add_text(
      "--arch", options->arch,
      "the GPU's architecture, such as sm_90a (default: that of the GPU, else sm_90a)");
  command.add_flag("--json", options->json, "print one JSON array");
  command.callback([options] { run(*options); });
}

}  // namespace tegula::tool
