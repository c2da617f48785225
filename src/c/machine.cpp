#include "machine.hpp"

#include <unistd.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "guard.hpp"
#include "structures.hpp"
#include "tegula/device/error.hpp"
#include "tegula/io/text.hpp"

namespace tegula::c {
namespace {

constexpr tegula_machine_options kMachineDefaults = {
    .check = 1, .bank_conflicts = -1, .excess_sectors = -1};

int limit_of(char const* name, std::int32_t limit, bool checks) {
  if (limit >= 0 && !checks)
    throw argument_error("tegula_machine_create: " + std::string(name) + " is " +
                         std::to_string(limit) +
                         ", and check is off; it is about what the checker finds: leave it out.");
  if (limit >= -1) return limit;
  throw argument_error("tegula_machine_create: " + std::string(name) + " is " +
                       std::to_string(limit) + "; it must be at least 0, or -1 for any number.");
}

Arch arch_of(char const* name) {
  if (name == nullptr || std::string_view(name) == "sm90") return Arch::sm90;
  if (std::string_view(name) == "sm80") return Arch::sm80;
  if (std::string_view(name) == "sm100") return Arch::sm100;
  throw argument_error("tegula_machine_create: arch is " + io::in_quotes(name) +
                       "; it must be 'sm80', 'sm90' or 'sm100'.");
}

sim::Options options_of(tegula_machine_options const& given) {
  sim::Options options;
  std::string_view const scheduler = given.scheduler != nullptr ? given.scheduler : "last";
  if (scheduler == "first") {
    options.completion = sim::Completion::first;
    options.interleaving = sim::Interleaving::round_robin;
  } else if (scheduler == "random") {
    options.completion = sim::Completion::random;
    options.interleaving = sim::Interleaving::random;
  } else if (scheduler != "last") {
    throw argument_error("tegula_machine_create: scheduler is " + io::in_quotes(scheduler) +
                         "; it must be 'last', 'first' or 'random'.");
  }
  if (given.workers < 0 || given.workers > 1024)
    throw argument_error("tegula_machine_create: workers is " + std::to_string(given.workers) +
                         "; it must be from 0 to 1024.");
  options.seed = given.seed;
  options.check = given.check != 0;
  options.workers = given.workers;
  options.limits = {limit_of("bank_conflicts", given.bank_conflicts, options.check),
                    limit_of("excess_sectors", given.excess_sectors, options.check)};
  return options;
}

}  // namespace

Calls::Calls() : process_(getpid()) {}

void Calls::begin() {
  pid_t const own = getpid();
  if (process_ != own) {
    // Of threads that come here together, the first makes the machine this process's.
    if (count_ != 0 && process_ != own)
      throw device_error(
          "The machine is of the process that this one was forked from, where another thread was in "
          "a call on it; make a machine in this process.");
    process_ = own;
  }
  ++count_;
}

}  // namespace tegula::c

using namespace tegula;
using namespace tegula::c;

void tegula_machine_options_init(tegula_machine_options* options, size_t struct_size) {
  initialise(options, struct_size, kMachineDefaults);
}

tegula_status tegula_machine_create(char const* device, tegula_machine_options const* options,
                                    tegula_machine** machine) {
  return guarded([&] {
    not_null("tegula_machine_create", "device", device);
    not_null("tegula_machine_create", "machine", machine);
    tegula_machine_options const given =
        options == nullptr ? kMachineDefaults
                           : read_structure("tegula_machine_create", *options, kMachineDefaults);
    *machine =
        new tegula_machine{Machine::from_name(device, arch_of(given.arch), options_of(given))};
  });
}

void tegula_machine_free(tegula_machine* machine) { delete machine; }

tegula_status tegula_machine_name(tegula_machine const* machine, char** name) {
  return guarded([&] {
    not_null("tegula_machine_name", "machine", machine);
    not_null("tegula_machine_name", "name", name);
    *name = as_c_text(machine->machine.name());
  });
}

int32_t tegula_machine_compute_capability(tegula_machine const* machine) {
  return machine == nullptr ? 0 : machine->machine.compute_capability();
}

int32_t tegula_machine_is_simulated(tegula_machine const* machine) {
  return machine != nullptr && machine->machine.is_simulated() ? 1 : 0;
}

void tegula_report_free(tegula_report* report) { delete report; }

int64_t tegula_report_findings(tegula_report const* report) {
  return report == nullptr ? -1 : static_cast<int64_t>(report->held.findings.size());
}

tegula_status tegula_report_text(tegula_report const* report, int32_t counters, char** text) {
  return guarded([&] {
    not_null("tegula_report_text", "report", report);
    not_null("tegula_report_text", "text", text);
    *text = as_c_text(
        report->held.text(counters != 0 ? sim::Counters::shown : sim::Counters::left_out));
  });
}

tegula_status tegula_report_json(tegula_report const* report, int32_t counters, char** json) {
  return guarded([&] {
    not_null("tegula_report_json", "report", report);
    not_null("tegula_report_json", "json", json);
    *json = as_c_text(
        report->held.json(counters != 0 ? sim::Counters::shown : sim::Counters::left_out));
  });
}
