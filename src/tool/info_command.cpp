#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "compiled_kernels.hpp"
#include "output.hpp"
#include "tegula/device/family.hpp"
#include "tegula/device/machine.hpp"
#include "tegula/io/text.hpp"

namespace tegula::tool {
namespace {

using nlohmann::ordered_json;

/// The simulated machines, and each GPU or the reason why it cannot be used.
ordered_json machines() {
  ordered_json all = ordered_json::array();
  auto const add = [&](std::string const& option, auto&& make) {
    ordered_json entry = {{"option", option}};
    try {
      Machine const machine = make();
      entry["name"] = machine.name();
      entry["compute_capability"] = machine.compute_capability();
      entry["multiprocessors"] = machine.multiprocessors();
      entry["simulated"] = machine.is_simulated();
    } catch (device_error const& error) {
      entry["unusable"] = error.what();
    }
    all.push_back(entry);
  };
  add("--device sim --arch sm80", [] { return Machine::simulated(Arch::sm80); });
  add("--device sim --arch sm90", [] { return Machine::simulated(Arch::sm90); });
  add("--device sim --arch sm100", [] { return Machine::simulated(Arch::sm100); });
  for (int i = 0; i < std::max(1, cuda_device_count()); ++i)
    add(fmt::format("--device cuda:{}", i), [i] { return Machine::cuda(i); });
  return all;
}

template <KernelFamily F> ordered_json table(F family) {
  ordered_json all = ordered_json::array();
  for (int i = 0; i < static_cast<int>(configurations(family, Kernels::all).size()); ++i) {
    KernelResources const r = resources(family, i);
    all.push_back({{"index", i},
                   {"name", configuration_name(family, i)},
                   {"threads", r.threads},
                   {"shared_bytes", r.shared_bytes},
                   {"built", device::is_built(family, i)}});
  }
  return all;
}

/// The configurations of each family.
ordered_json kernels() {
  ordered_json all = ordered_json::object();
  Families::for_each([&](auto family) { all[family.name] = table(family); });
  return all;
}

void print_cache(ordered_json const& cache) {
  bool const compiler = cache.contains("compiler");
  print("compiler: {}\n", cache[compiler ? "compiler" : "no_compiler"].get<std::string>());
  std::string const folder = cache["folder"];
  print("kernel cache: {}{}\n", folder.empty() ? "none, for HOME is not set" : folder,
        cache["kernels"].empty() ? ", empty" : "");
  for (auto const& kernel : cache["kernels"])
    print("  {:>8}  {} for {}, {}\n", kernel["bytes"].get<std::size_t>(),
          kernel["name"].get<std::string>(), kernel["arch"].get<std::string>(),
          kernel["compiler"].get<std::string>());
}

void run(bool json) {
  ordered_json const info = {{"machines", machines()},
                             {"cuda_architectures", cuda_architectures()},
                             {"kernel_cache", cache_json()},
                             {"kernels", kernels()}};
  if (json) {
    print("{}\n", dump(info));
    return;
  }
  print("machines\n");
  for (auto const& machine : info["machines"]) {
    std::string const text =
        machine.contains("unusable")
            ? "unusable: " + machine["unusable"].get<std::string>()
            : fmt::format("{}, {}", machine["name"].get<std::string>(),
                          io::counted(machine["multiprocessors"].get<int>(), "multiprocessor"));
    print("  {:<26}{}\n", machine["option"].get<std::string>(), text);
  }
  std::string const architectures = info["cuda_architectures"];
  print("CUDA kernels: {}\n", architectures.empty()
                                  ? "none in this build; they are compiled when first used"
                                  : "compiled for " + architectures);
  print_cache(info["kernel_cache"]);
  for (auto const& [kernel, table] : info["kernels"].items()) {
    auto const is_built = [](ordered_json const& c) { return c["built"].get<bool>(); };
    print("{}: {}, {} of them built\n  index  threads  shared bytes  built  name\n", kernel,
          io::counted(table.size(), "configuration"), std::ranges::count_if(table, is_built));
    for (auto const& c : table)
      print("  {:>5}  {:>7}  {:>12}  {:<5}  {}\n", c["index"].get<int>(), c["threads"].get<int>(),
            c["shared_bytes"].get<std::size_t>(), is_built(c) ? "yes" : "no",
            c["name"].get<std::string>());
  }
}

}  // namespace

void add_info_command(Command const& app) {
  auto const json = std::make_shared<bool>(false);
  Command const command = app.add_command("info", "Machines, kernels and their configurations");
  command.footer("Examples:\n  tegula info\n  tegula info --json");
  command.add_flag("--json", *json, "print one JSON object");
  command.callback([json] { run(*json); });
}

}  // namespace tegula::tool
