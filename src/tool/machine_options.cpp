// The options of `tegula gemm` and `tegula attention` that choose a machine and say what it does.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <initializer_list>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <vector>

#include "kernel_run.hpp"
#include "output.hpp"
#include "tegula/io/files.hpp"
#include "tegula/io/text.hpp"

namespace tegula::tool {

void ProgressBar::begin_launch(int index, int launches) {
  std::scoped_lock const lock(mutex_);
  if (index == 0) begin_ = Clock::now();
  launch_ = index, launches_ = launches, done_ = total_ = 0;
  running_ = true;
  if (ticker_.joinable() || isatty(STDERR_FILENO) == 0) return;
  try {
    ticker_ = std::jthread([this](std::stop_token const& stop) { redraw_until(stop); });
  } catch (std::system_error const&) {
    // Without a thread the line is drawn whenever a CTA is done.
  }
}

void ProgressBar::redraw_until(std::stop_token const& stop) {
  std::unique_lock lock(mutex_);
  while (!stopped_.wait_for(lock, stop, std::chrono::milliseconds(500),
                            [&] { return stop.stop_requested(); }))
    if (running_) draw(Clock::now());
}

void ProgressBar::update(std::int64_t done, std::int64_t total) {
  std::scoped_lock const lock(mutex_);
  auto const now = Clock::now();
  if (done < done_ && launches_ == 1) begin_ = now;  // another kernel
  done_ = done, total_ = total;
  draw(now);
}

void ProgressBar::draw(Clock::time_point now) {
  bool const due =
      now - begin_ > std::chrono::seconds(2) && now - drawn_ > std::chrono::milliseconds(100);
  if (!due || isatty(STDERR_FILENO) == 0) return;
  drawn_ = now;
  constexpr double width = 40;
  double const of_launch =
      total_ > 0 ? static_cast<double>(done_) / static_cast<double>(total_) : 0;
  double const share = (launch_ + of_launch) / launches_;
  auto const filled = static_cast<std::size_t>(width * share);
  double const seconds = std::chrono::duration<double>(now - begin_).count();
  say("\r[{}{}] {}{}, {} ", std::string(filled, '#'),
      std::string(static_cast<std::size_t>(width) - filled, ' '),
      total_ > 0 ? fmt::format("{} of {}", done_, io::counted(total_, "CTA")) : "the first CTAs",
      launches_ > 1 ? fmt::format(" of launch {} of {}", launch_ + 1, launches_) : "",
      share > 0 ? fmt::format("{:.0f} s left", seconds * (1 - share) / share)
                : fmt::format("{:.0f} s so far", seconds));
  std::fflush(stderr);
  visible_ = true;
}

void ProgressBar::clear() {
  std::scoped_lock const lock(mutex_);
  running_ = false;
  if (!visible_) return;
  say("\r\033[K");
  std::fflush(stderr);
  visible_ = false;
}

namespace {

constexpr std::int64_t kMostInt = std::numeric_limits<int>::max();

template <class T>
Option added(Command const& command, char const* name, T& value, std::string const& text) {
  if constexpr (std::is_same_v<T, bool>) {
    return command.add_flag(name, value, text);
  } else {
    return command.add_option(name, value, text);
  }
}

}  // namespace

void add_machine_options(Command const& command, MachineOptions& options) {
  auto const simulated = [&](char const* name, auto& value, std::string const& text) {
    options.simulated.emplace_back(name, added(command, name, value, text));
    return options.simulated.back().second;
  };
  auto const of_simulated_run = [&](char const* name, auto& value, std::string const& text) {
    Option const option = simulated(name, value, text);
    options.of_run.emplace_back(name, option);
    return option;
  };
  command
      .add_option(
          "--device", options.device,
          "where to run: sim (the simulated GPU), cuda, cuda:NUMBER, or auto (a GPU if there is one, else sim)")
      .show_default();
  simulated("--arch", options.arch, "generation of the simulated GPU")
      .check(one_of({"sm80", "sm90", "sm100"}))
      .show_default();
  Option const scheduler =
      of_simulated_run(
          "--scheduler", options.scheduler,
          "the order of events on the simulated GPU: last, where copies land at the last legal moment and a warp "
          "runs until it waits; first, where copies land at once and warps take turns; random, by --seed")
          .check(one_of({"last", "first", "random"}))
          .show_default();
  Option const completion = of_simulated_run("--completion", options.completion,
                                             "when copies land, in place of what --scheduler says")
                                .check(one_of({"last", "first", "random"}));
  Option const interleaving =
      of_simulated_run(
          "--interleaving", options.interleaving,
          "which warp runs next, in place of what --scheduler says; random, and which warp is behind, by --seed")
          .check(one_of({"one_warp_ahead", "round_robin", "random", "one_warp_behind"}));
  Option const choices =
      of_simulated_run("--choices", options.choices,
                       "replay an order of events that an exploration of the kernel has printed")
          .excludes({scheduler, completion, interleaving});
  command
      .add_option("--seed", options.seed,
                  "the seed of generated data, and of orders that are random")
      .check(seed_number())
      .show_default();
  of_simulated_run("--workers", options.workers,
                   "threads of the host that simulate; 0: one for each core")
      .check(whole_number(0, 1024))
      .show_default()
      .excludes({choices});
  of_simulated_run("--unchecked", options.unchecked,
                   "simulate without the checker, which is faster");
  simulated(
      "--sms", options.multiprocessors,
      "multiprocessors of the simulated GPU (default: 132; 108 with --arch sm80, 148 with sm100). A persistent kernel "
      "launches one or two CTAs for each")
      .check(whole_number(1, 1 << 16));
  of_simulated_run("--report", options.report,
                   "write what the checker found and what was counted, as JSON")
      .check(own_file_name());
  of_simulated_run("--report-without-counters", options.report_without_counters,
                   "leave what was counted out of that file");
  of_simulated_run(
      "--bank-conflicts", options.limits.bank_conflicts,
      "find accesses to shared memory that have more bank conflicts than this (default: what the kernel declares)")
      .check(whole_number(0, kMostInt));
  of_simulated_run(
      "--excess-sectors", options.limits.excess_sectors,
      "find accesses to global memory that touch more sectors than their bytes need, and more than this many of them "
      "(likewise)")
      .check(whole_number(0, kMostInt));
  of_simulated_run(
      "--allow", options.allow,
      "accept the findings that this JSON file lists: [{\"kind\", \"file\", \"line\", \"buffer\", \"reason\"}, ...]")
      .check(own_file_name());
  of_simulated_run(
      "--trace", options.trace,
      "write who did what when, by the simulated GPU's model of time, in Chrome's trace format")
      .check(own_file_name());
  of_simulated_run("--svg", options.svg, "draw that, as SVG").check(own_file_name());
  of_simulated_run("--trace-ctas", options.trace_ctas,
                   "how many CTAs --trace and --svg show, from the first on, their clusters whole")
      .check(whole_number(1, 4096))
      .show_default();
  of_simulated_run("--trace-barriers", options.trace_barriers,
                   "show the phases of their mbarriers, too");
}

void add_repeat(Command const& command, int& repeat, MachineOptions& options) {
  options.of_run.emplace_back("--repeat", command.add_option("--repeat", repeat, "launches to time")
                                              .check(whole_number(1, kMostInt))
                                              .show_default());
}

void check_machine_options(MachineOptions const& options, bool explains) {
  auto const given = [&](std::string_view name) {
    return std::ranges::any_of(options.of_run, [&](auto const& each) {
      return each.first == name && each.second.given();
    });
  };
  for (auto const& [name, option] : options.of_run)
    if (explains && option.given())
      throw argument_error(fmt::format("{} is of a run, and --explain runs nothing.", name));
  for (std::string_view const name : {"--trace-ctas", "--trace-barriers"})
    if (given(name) && !given("--trace") && !given("--svg"))
      throw argument_error(fmt::format(
          "{} is given, and neither --trace nor --svg, of which it says what they show.", name));
  if (options.report_without_counters && !given("--report"))
    throw argument_error(
        "--report-without-counters is given, and not --report, of whose file it speaks.");
  if (options.report_without_counters && options.unchecked)
    throw argument_error(
        "--report-without-counters is given beside --unchecked, which finds nothing: the report "
        "would be empty; one of them must be left out.");
  if (given("--scheduler") && given("--completion") && given("--interleaving"))
    throw argument_error(fmt::format(
        "--scheduler is {}, and --completion and --interleaving say all that it would; it must be "
        "left out.",
        options.scheduler));
  for (std::string_view const name : {"--allow", "--bank-conflicts", "--excess-sectors"})
    if (given(name) && options.unchecked)
      throw argument_error(fmt::format(
          "{} is about what the checker finds, and --unchecked simulates without it.", name));
}

namespace {

std::vector<sim::Suppression> read_suppressions(std::string const& path) {
  constexpr std::int64_t kLongest = std::int64_t{1} << 24;
  std::string const text = read_file("--allow", path, kLongest);
  try {
    return sim::parse_suppressions(text);
  } catch (std::invalid_argument const& error) {
    throw argument_error(fmt::format("--allow {}: {}", io::in_quotes(path), error.what()));
  }
}

sim::Choices read_choices(std::string const& text) {
  try {
    return sim::Choices::parse(text);
  } catch (std::invalid_argument const& error) {
    throw argument_error(
        fmt::format("--choices {}: {}", io::in_quotes(text), io::printable(error.what(), 300)));
  }
}

/// Sets `value` to the one of these whose name is `name`, where there is a name.
template <class Value>
void choose_named(std::string const& name, Value& value, std::initializer_list<Value> values) {
  for (Value const one : values)
    if (name == to_string(one)) value = one;
}

Machine find_machine(std::string const& name, Arch arch, sim::Options const& simulation) {
  try {
    return Machine::from_name(name, arch, simulation);
  } catch (argument_error const& error) {
    throw argument_error(fmt::format("--device: {}", error.what()));
  } catch (device_error const& error) {
    throw device_error(fmt::format("--device {}: {}", io::printable(name), error.what()));
  }
}

}  // namespace

Machine make_machine(MachineOptions const& options, ProgressBar& bar) {
  sim::Options simulation;
  if (options.scheduler == "first") {
    simulation.completion = sim::Completion::first;
    simulation.interleaving = sim::Interleaving::round_robin;
  } else if (options.scheduler == "random") {
    simulation.completion = sim::Completion::random;
    simulation.interleaving = sim::Interleaving::random;
  }
  choose_named(options.completion, simulation.completion,
               {sim::Completion::last, sim::Completion::first, sim::Completion::random});
  choose_named(options.interleaving, simulation.interleaving,
               {sim::Interleaving::one_warp_ahead, sim::Interleaving::round_robin,
                sim::Interleaving::random, sim::Interleaving::one_warp_behind});
  if (options.choices) simulation.choices = read_choices(*options.choices);
  simulation.seed = options.seed;
  simulation.workers = options.workers;
  simulation.check = !options.unchecked;
  simulation.multiprocessors = options.multiprocessors;
  simulation.limits = options.limits;
  if (!options.allow.empty()) simulation.allow = read_suppressions(options.allow);
  Arch const arch = options.arch == "sm80"    ? Arch::sm80
                    : options.arch == "sm100" ? Arch::sm100
                                              : Arch::sm90;
  bool const timeline = !options.trace.empty() || !options.svg.empty();
  if (timeline)
    simulation.trace = {options.trace_ctas, sim::timing_of(arch), options.trace_barriers};
  simulation.progress = [&bar](std::int64_t done, std::int64_t total) { bar.update(done, total); };
  Machine machine = find_machine(options.device, arch, simulation);
  for (auto const& [name, option] : options.simulated)
    if (option.given() && !machine.is_simulated())
      throw argument_error(fmt::format(
          "{} is of a simulated machine, and this is {}; use --device sim.", name, machine.name()));
  return machine;
}

void check_lines(bool lines, bool json, bool explains, Machine const& machine) {
  if (lines && json)
    throw argument_error(
        "--lines is of the text, and --json is given, which has the lines anyway.");
  if (lines && !explains && !machine.is_simulated())
    throw argument_error(fmt::format(
        "--lines shows what a simulated machine counts, and this is {}; use --device sim.",
        machine.name()));
}

void write_timeline(MachineOptions const& options, Machine const& machine,
                    std::string const& title) {
  if (options.trace.empty() && options.svg.empty()) return;
  sim::Trace trace = machine.last_report()->trace.value();
  trace.kernel = title;
  if (!options.trace.empty()) write_output("--trace", options.trace, to_chrome_json(trace));
  if (!options.svg.empty()) write_output("--svg", options.svg, to_svg(trace));
}

std::vector<io::NamedPath> machine_targets(MachineOptions const& options) {
  std::vector<io::NamedPath> targets;
  for (auto const& [option, path] : {std::pair("--report", &options.report),
                                     {"--trace", &options.trace},
                                     {"--svg", &options.svg}})
    if (!path->empty()) targets.push_back({option, *path});
  return targets;
}

void refuse_files_of_a_run(std::vector<io::NamedPath> const& files) {
  for (auto const& [option, file] : files)
    if (!file.empty())
      throw argument_error(fmt::format("{} is of a run, and --explain runs nothing.", option));
}

std::vector<io::NamedPath> machine_inputs(MachineOptions const& options) {
  if (options.allow.empty()) return {};
  return {{"--allow", options.allow}};
}

}  // namespace tegula::tool
