#include "kernel_run.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <limits>

#include "output.hpp"
#include "tegula/io/files.hpp"
#include "tegula/io/text.hpp"
#include "tegula/numeric/narrow_double.hpp"

namespace tegula::tool {

using nlohmann::ordered_json;

void ProgressBar::update(std::int64_t done, std::int64_t total) {
  std::scoped_lock const lock(mutex_);
  auto const now = Clock::now();
  if (done < last_done_) begin_ = now;  // another launch
  last_done_ = done;
  bool const due =
      now - begin_ > std::chrono::seconds(2) && now - drawn_ > std::chrono::milliseconds(100);
  if (!due || total <= 0 || isatty(STDERR_FILENO) == 0) return;
  drawn_ = now;
  constexpr std::int64_t width = 40;
  auto const filled = static_cast<std::size_t>(width * done / total);
  double const seconds = std::chrono::duration<double>(now - begin_).count();
  double const left =
      done > 0 ? seconds * static_cast<double>(total - done) / static_cast<double>(done) : 0;
  say("\r[{}{}] {} of {} CTAs, {:.0f} s left ", std::string(filled, '#'),
      std::string(width - filled, ' '), done, total, left);
  std::fflush(stderr);
  visible_ = true;
}

void ProgressBar::clear() {
  std::scoped_lock const lock(mutex_);
  if (!visible_) return;
  say("\r\033[K");
  std::fflush(stderr);
  visible_ = false;
}

namespace {

constexpr std::int64_t kMostInt = std::numeric_limits<int>::max();

}  // namespace

void add_machine_options(Command const& command, MachineOptions& options) {
  auto const simulated = [&](char const* name, Option const& option) {
    options.simulated.emplace_back(name, option);
    return option;
  };
  auto const of_simulated_run = [&](char const* name, Option const& option) {
    options.of_run.emplace_back(name, option);
    return simulated(name, option);
  };
  command
      .add_option("--device", options.device,
                  "sim, cuda, cuda:NUMBER, or auto: a GPU if there is one, else sim")
      .show_default();
  simulated("--arch", command.add_option("--arch", options.arch, "GPU generation to simulate")
                          .check(one_of({"sm80", "sm90", "sm100"}))
                          .show_default());
  Option const scheduler = of_simulated_run(
      "--scheduler",
      command
          .add_option(
              "--scheduler", options.scheduler,
              "when simulated copies land and warps take turns: last (at the last legal moment; a warp runs until it waits), first (at once; "
              "warps in turn), random (by seed)")
          .check(one_of({"last", "first", "random"}))
          .show_default());
  Option const completion = of_simulated_run(
      "--completion",
      command
          .add_option("--completion", options.completion,
                      "when simulated copies land, whatever the scheduler: last, first, random")
          .check(one_of({"last", "first", "random"})));
  Option const interleaving = of_simulated_run(
      "--interleaving",
      command
          .add_option(
              "--interleaving", options.interleaving,
              "which warp runs next, whatever the scheduler: one_warp_ahead, round_robin, random, one_warp_behind (seed)")
          .check(one_of({"one_warp_ahead", "round_robin", "random", "one_warp_behind"})));
  of_simulated_run(
      "--choices",
      command
          .add_option("--choices", options.choices,
                      "replay an order that an exploration of a kernel of one cluster has printed")
          .excludes({scheduler, completion, interleaving}));
  command.add_option("--seed", options.seed, "of generated data and of the random scheduler")
      .check(seed_number())
      .show_default();
  of_simulated_run("--workers", command
                                    .add_option("--workers", options.workers,
                                                "host threads that simulate; 0: one for each core")
                                    .check(whole_number(0, 1024))
                                    .show_default());
  of_simulated_run("--unchecked",
                   command.add_flag("--unchecked", options.unchecked,
                                    "simulate without the checker's shadow memory: faster"));
  simulated(
      "--sms",
      command
          .add_option(
              "--sms", options.multiprocessors,
              "multiprocessors of the simulated GPU (132, or 108 with --arch sm80, 148 with sm100); a persistent kernel has a CTA or two for each")
          .check(whole_number(1, 1 << 16)));
  of_simulated_run(
      "--report",
      command
          .add_option(
              "--report", options.report,
              "write what the simulated machine found and counted, as JSON; findings exit with 1")
          .check(own_file_name()));
  of_simulated_run("--report-without-counters",
                   command.add_flag("--report-without-counters", options.report_without_counters,
                                    "leave what was counted out of the file that --report writes"));
  of_simulated_run(
      "--bank-conflicts",
      command
          .add_option(
              "--bank-conflicts", options.limits.bank_conflicts,
              "find accesses to shared memory with more bank conflicts than so many (what the kernel declares)")
          .check(whole_number(0, kMostInt)));
  of_simulated_run(
      "--excess-sectors",
      command
          .add_option(
              "--excess-sectors", options.limits.excess_sectors,
              "find accesses to global memory that touch so many sectors more than their bytes need (likewise)")
          .check(whole_number(0, kMostInt)));
  of_simulated_run(
      "--allow",
      command
          .add_option(
              "--allow", options.allow,
              "accept the findings that this JSON file lists: [{\"kind\", \"file\", \"line\", \"buffer\", \"reason\"}, ...]")
          .check(own_file_name()));
  of_simulated_run(
      "--trace",
      command
          .add_option(
              "--trace", options.trace,
              "write who did what when, by the simulated machine's model of time, in Chrome's trace format")
          .check(own_file_name()));
  of_simulated_run("--svg",
                   command.add_option("--svg", options.svg, "draw it").check(own_file_name()));
  of_simulated_run("--trace-ctas", command
                                       .add_option("--trace-ctas", options.trace_ctas,
                                                   "of the first so many CTAs, in whole clusters")
                                       .check(whole_number(1, kMostInt))
                                       .show_default());
  of_simulated_run("--trace-barriers", command.add_flag("--trace-barriers", options.trace_barriers,
                                                        "with the phases of their mbarriers"));
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

Machine find_machine(std::string const& name, Arch arch, sim::Options const& simulation) {
  try {
    return Machine::from_name(name, arch, simulation);
  } catch (argument_error const& error) {
    throw argument_error(fmt::format("--device: {}", error.what()));
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
  for (auto const completion :
       {sim::Completion::last, sim::Completion::first, sim::Completion::random}) {
    if (options.completion == to_string(completion)) simulation.completion = completion;
  }
  for (auto const interleaving : {sim::Interleaving::one_warp_ahead, sim::Interleaving::round_robin,
                                  sim::Interleaving::random, sim::Interleaving::one_warp_behind}) {
    if (options.interleaving == to_string(interleaving)) simulation.interleaving = interleaving;
  }
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

namespace {

/// f(), with the option in front of what is wrong with its file.
template <class F> auto with_option(std::string const& option, F&& f) {
  try {
    return f();
  } catch (io::io_error const& error) {
    throw argument_error(fmt::format("{} {}", option, error.what()));
  }
}

}  // namespace

void add_array_file(std::vector<io::NamedPath>& paths, char const* option,
                    std::string const& name) {
  if (!name.empty())
    paths.push_back({option, with_option(option, [&] { return io::file_of_array(name); })});
}

DType parse_dtype(char const* option, std::string const& name) {
  for (DType const type :
       {DType::f16, DType::bf16, DType::f32, DType::tf32, DType::e4m3, DType::e5m2})
    if (name == to_string(type)) return type;
  throw argument_error(fmt::format("{} is {}; it must be f16, bf16, f32, tf32, e4m3 or e5m2.",
                                   option, io::in_quotes(name)));
}

std::int64_t Operand::size() const {
  return static_cast<std::int64_t>(data.size()) / (bits(type) / 8);
}

namespace {

template <class T> void store(std::byte* to, T value) { std::memcpy(to, &value, sizeof value); }

/// `count` doubles value(i), rounded once to nearest even; of tf32, f32 whose last bits the
/// kernel drops.
template <class Value>
std::vector<std::byte> round_to(DType type, std::size_t count, Value&& value) {
  auto const size = static_cast<std::size_t>(bits(type) / 8);
  std::vector<std::byte> data(count * size);
  for (std::size_t i = 0; i < count; ++i) {
    double const exact = value(i);
    float const x = rounded_to_odd(exact);
    std::byte* const to = data.data() + i * size;
    if (type == DType::f16)
      store(to, to_half(x));
    else if (type == DType::bf16)
      store(to, to_bfloat16(x));
    else if (type == DType::e4m3)
      store(to, to_float_e4m3(x));
    else if (type == DType::e5m2)
      store(to, to_float_e5m2(x));
    else
      store(to, static_cast<float>(exact));
  }
  return data;
}

std::optional<DType> dtype_of_file(io::ElementType type) {
  switch (type) {
    case io::ElementType::f16:
      return DType::f16;
    case io::ElementType::bf16:
      return DType::bf16;
    case io::ElementType::f32:
      return DType::f32;
    case io::ElementType::e4m3:
      return DType::e4m3;
    case io::ElementType::e5m2:
      return DType::e5m2;
    default:
      return std::nullopt;
  }
}

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), as a function of a counter.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// Bytes that an array from a file takes while it is read: its own, and those of its elements as
/// doubles and as the wanted type where it is not of that.
double bytes_to_read(io::ArrayType const& array, DType wanted, bool as_it_is) {
  double elements = 1;
  for (auto const extent : array.shape) elements *= static_cast<double>(extent);
  double const rounded = as_it_is ? 0 : sizeof(double) + bits(wanted) / 8;
  return elements * (io::size_of(array.type) + rounded);
}

}  // namespace

Operand read_operand(std::string const& option, std::string const& name, std::optional<DType> type,
                     std::size_t least_rank, std::size_t most_rank) {
  std::string const shown = io::printable(name);
  io::ArrayType const described = with_option(option, [&] { return io::describe_array(name); });
  auto const& shape = described.shape;
  if (shape.size() < least_rank || shape.size() > most_rank)
    throw argument_error(fmt::format(
        "{} {} has shape {}; it must have {} axes.", option, shown, io::shape_text(shape),
        least_rank == most_rank ? fmt::format("{}", most_rank)
                                : fmt::format("{} or {}", least_rank, most_rank)));
  if (std::find(shape.begin(), shape.end(), 0) != shape.end())
    throw argument_error(fmt::format("{} {} has shape {}; every extent must be at least 1.", option,
                                     shown, io::shape_text(shape)));
  auto const held = dtype_of_file(described.type);
  if (!held && described.type != io::ElementType::f64)
    throw argument_error(
        fmt::format("{} {} holds {}; it must hold f16, bf16, e4m3, e5m2, f32 or f64.", option,
                    shown, io::to_string(described.type)));
  if (!type && (!held || *held == DType::f32))
    throw argument_error(fmt::format(
        "{} {} holds {}, which no kernel multiplies; say to which type it is to be rounded.",
        option, shown, io::to_string(described.type)));
  DType const wanted = type.value_or(held.value_or(DType::f32));
  require_memory(fmt::format("{} {}", option, shown),
                 bytes_to_read(described, wanted, held == wanted));
  io::Array array = with_option(option, [&] { return io::read_array(name); });
  if (held == wanted) return {wanted, array.shape, std::move(array.data)};
  auto const values = io::to_doubles(array);
  return {wanted, array.shape,
          round_to(wanted, values.size(), [&](std::size_t i) { return values[i]; })};
}

Operand generate(std::vector<std::int64_t> shape, DType type, std::uint64_t seed,
                 std::uint64_t stream) {
  std::int64_t count = 1;
  for (auto const extent : shape) {
    if (extent < 1 || extent > kMaxExtent || __builtin_mul_overflow(count, extent, &count) ||
        count > (std::int64_t{1} << 40))
      throw argument_error(fmt::format(
          "data of shape {} cannot be generated; extents must be at least 1, and the elements at most 2^40.",
          io::shape_text(shape)));
  }
  std::uint64_t const key = mix(seed ^ mix(stream));
  auto const value = [&](std::size_t i) {
    auto const bits24 = static_cast<float>(mix(key + i) >> 40);
    return static_cast<double>(bits24 * 0x1p-23f - 1.0f);
  };
  return {type, std::move(shape), round_to(type, static_cast<std::size_t>(count), value)};
}

void agree(Extent& extent, std::int64_t from_file, char const* option, std::string const& file) {
  std::string const by = fmt::format("{} {}", option, io::printable(file));
  if (extent.value == 0) {
    extent.value = from_file;
    extent.said_by = by;
  }
  if (extent.value != from_file)
    throw argument_error(fmt::format("{}: {} is {}, but {} by {}; both must be the same.", by,
                                     extent.name, from_file, extent.value, extent.said_by));
}

namespace {

/// Bytes of memory that can be had without taking them from others: what the system says is
/// available, and what the process may still ask for.
double free_memory() {
  double bytes = std::numeric_limits<double>::infinity();
  std::ifstream info("/proc/meminfo");
  std::string name;
  double kilobytes = 0;
  for (std::string unit; info >> name >> kilobytes; std::getline(info, unit)) {
    if (name == "MemAvailable:") bytes = kilobytes * 1024;
  }
  rlimit limit = {};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    bytes = std::min(bytes, static_cast<double>(limit.rlim_cur));
  return bytes;
}

}  // namespace

void require_memory(std::string const& what, double bytes) {
  double const available = free_memory();
  if (bytes > available)
    throw argument_error(
        fmt::format("{} needs about {:.3g} GB of memory, and {:.3g} GB are free; a smaller "
                    "problem or a larger machine is needed.",
                    what, bytes * 1e-9, available * 1e-9));
}

void write_operand(char const* option, std::string const& name, Operand const& operand) {
  auto const type = operand.type == DType::f16    ? io::ElementType::f16
                    : operand.type == DType::bf16 ? io::ElementType::bf16
                                                  : io::ElementType::f32;
  with_option(option, [&] { io::write_array(name, {type, operand.shape, operand.data}); });
}

Buffer<std::byte> upload(Machine const& machine, Operand const& operand, std::string const& name) {
  return Buffer<std::byte>(machine, operand.data, name);
}

std::vector<double> rows_as_doubles(Operand const& operand, std::int64_t row,
                                    std::vector<std::int64_t> const& rows) {
  std::vector<double> values;
  values.reserve(rows.size() * static_cast<std::size_t>(row));
  for (auto const r : rows)
    for (std::int64_t i = 0; i < row; ++i)
      values.push_back(reference::element(operand.data.data(), operand.type, r * row + i));
  return values;
}

std::string to_string(Asked const& asked) {
  std::string text;
  for (auto const& [option, value] : asked)
    if (!value.empty()) text += fmt::format("{}{} {}", text.empty() ? "" : " ", option, value);
  return text;
}

double time_launches(Machine const& machine, int repeat, std::function<void()> const& launch) {
  if (!machine.is_simulated()) launch();
  Event begin = machine.create_event(), end = machine.create_event();
  begin.record();
  for (int i = 0; i < repeat; ++i) launch();
  end.record();
  machine.synchronize();
  return milliseconds(begin, end) / repeat;
}

double checked_launches(Machine const& machine, MachineOptions const& options, ProgressBar& bar,
                        int repeat, bool json, std::function<void()> const& launch) {
  auto const write_report = [&] {
    auto const counters =
        options.report_without_counters ? sim::Counters::left_out : sim::Counters::shown;
    if (!options.report.empty())
      write_output("--report", options.report, machine.last_report().value().json(counters) + "\n");
  };
  try {
    double const milliseconds = time_launches(machine, repeat, launch);
    bar.clear();
    write_report();
    return milliseconds;
  } catch (sim::CheckError const& error) {
    bar.clear();
    std::size_t const found = error.report().findings.size();
    std::string const sentence = fmt::format("the checker found {} fault{} in {}", found,
                                             found == 1 ? "" : "s", error.report().kernel);
    say("tegula: {}\n{}\n", sentence, error.what());
    write_report();
    if (json)
      print("{}\n",
            dump({{"error", sentence}, {"report", ordered_json::parse(error.report().json())}}));
    throw reported_failure();
  }
}

std::vector<std::int64_t> rows_to_check(std::int64_t total, double work, std::int64_t elements) {
  constexpr double kWork = 4e9;
  constexpr double kElements = 1 << 24;
  double const most =
      std::min(kWork / std::max(1.0, work), kElements / static_cast<double>(elements));
  return reference::some_rows(total, static_cast<std::int64_t>(std::max(1.0, most)));
}

void print_verdict(Verdict const& v, Machine const& machine, bool json, bool lines) {
  bool within = true;
  for (auto const& part : v.parts) within = within && part.comparison.within();
  auto const report = machine.last_report();
  double const rate = v.milliseconds > 0 ? 2 * v.multiply_adds / (v.milliseconds * 1e-3) : 0;

  if (json) {
    ordered_json out = v.problem;
    out["machine"] = machine.name();
    out["configuration"] = {{"index", v.configuration_index}, {"name", v.configuration}};
    out["milliseconds"] = v.milliseconds;
    out["flops_per_second"] = rate;
    out["rows"] = v.rows;
    out["rows_checked"] = v.rows_checked;
    for (auto const& part : v.parts) {
      auto const finite = [](double x) {
        return std::isfinite(x) ? ordered_json(x) : ordered_json(fmt::format("{}", x));
      };
      out[part.name] = {{"max_error", finite(part.comparison.max_error)},
                        {"max_error_over_bound", finite(part.comparison.max_ratio)},
                        {"worst", part.worst},
                        {"worst_result", finite(part.comparison.worst_result)}};
    }
    out["within_bound"] = within;
    if (!v.output.empty()) out["output"] = v.output;
    if (report) out["report"] = ordered_json::parse(report->json());
    print("{}\n", dump(out));
  } else {
    print("{}\n{}\nconfiguration {}: {}\n", machine.name(), v.headline, v.configuration_index,
          v.configuration);
    print("{:.3f} ms, {:.4g} {}FLOP/s\n", v.milliseconds, rate >= 1e12 ? rate * 1e-12 : rate * 1e-9,
          rate >= 1e12 ? "T" : "G");
    for (auto const& part : v.parts)
      print(
          "{}: error at most {:.3g}, {:.2f} of its bound at {} ({} of {} rows checked against float64)\n",
          part.name, part.comparison.max_error, part.comparison.max_ratio, part.worst,
          v.rows_checked, v.rows);
    if (report) {
      sim::LineCounters const& t = report->total;
      print(
          "counted: {} warp instructions, of them {} mma.sync and {} wgmma with {} multiply-adds; shared memory {} bytes in {} wavefronts, {} of them "
          "bank conflicts; global memory {} bytes in {} sectors\n",
          t.instructions, report->instruction("mma.sync").instructions,
          report->instruction("wgmma.mma_async").instructions, t.fused_multiply_adds,
          t.shared_bytes, t.shared_wavefronts, t.bank_conflicts, t.global_bytes, t.global_sectors);
      if (lines) {
        print("{}", report->text());
      } else if (report->open_choices != 0) {
        print(
            "order: one of an estimated 2^{}; sim::explore runs every one of a problem of one cluster\n",
            report->open_choices);
      }
    }
    if (!v.output.empty()) print("written to {}\n", v.output);
    print("{}\n", within ? "within bounds" : "WRONG: beyond the bound");
  }
  if (!within) throw reported_failure();
}

}  // namespace tegula::tool
