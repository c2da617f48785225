#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <initializer_list>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "commands.hpp"
#include "draw_tiling.hpp"
#include "kernel_run.hpp"
#include "output.hpp"
#include "tegula/device/gemm_plan.hpp"
#include "tegula/device/launch.hpp"
#include "tegula/device/selection.hpp"

namespace tegula::tool {
namespace {

constexpr char const* kFooter =
    R"(A is (m, k), or (k, m) with --trans-a; B is (k, n), or (n, k) with --trans-b; C and D are (m, n); bias is (n).
With --batch each of A, B, C and D has one axis more, in front; a file of A, B or C without it serves all batches.
Every array is dense and row-major. D = activation(alpha scale_a scale_b A B + beta C + bias) is checked against
float64, within a bound derived from the arithmetic; a result beyond it exits with 1.

The kernel and its configuration are chosen by a model of the GPU. --explain shows what was weighed, and runs nothing;
the options under "choice" decide parts of it by hand.

Examples:
  tegula gemm --m 512 --n 512 --k 256
  tegula gemm --m 100 --n 70 --k 33 --dtype f16 --out-type f32 --trans-b --device sim --arch sm80 --json
  tegula gemm --in e4m3 --in-b e5m2 --trans-b --scale-a 0.5 --scale-b 2 --activation gelu --batch 3 --m 64 --n 96 --k 128 --out bf16
  tegula gemm --a x.npy --b model.safetensors:encoder.weight --trans-b --bias model.safetensors:encoder.bias --dtype f16 --output y.npy
  tegula gemm --m 4096 --n 4096 --k 4096 --trans-b --device sim --explain
  tegula gemm --m 4096 --n 4096 --k 4096 --trans-b --device sim --explain --tile 128x256 --draw-tiles tiles.svg
  tegula gemm --m 8192 --n 8192 --k 8192 --device cuda --schedule pingpong --repeat 20)";

struct Options {
  MachineOptions machine;
  std::string a, b, c, bias, output, tiles_drawing;
  std::int64_t m = 0, n = 0, k = 0, batch = 0;  // 0: as the files say, or the default
  std::string dtype, dtype_b, out_type, activation = "none";
  bool trans_a = false, trans_b = false, json = false, lines = false, explain = false, measure = false;
  float alpha = 1, beta = 0;
  std::optional<float> scale_a, scale_b;
  int repeat = 1;
  struct {
    std::string kernel, schedule, tile, cluster, raster, widths;
    std::optional<int> configuration, split_k, group;
  } choice;
};

constexpr std::int64_t kDefaultExtent = 256;

template <class Value>
Value named(std::string const& text, std::initializer_list<std::pair<char const*, Value>> names) {
  for (auto const& [name, value] : names)
    if (text == name) return value;
  throw argument_error(fmt::format("'{}' is not a name that is known here.", text));  // CLI11 has checked it
}

/// Two whole numbers, "128x256".
std::pair<int, int> extents(std::string const& option, std::string const& text) {
  int first = 0, second = 0, end = 0;
  if (std::sscanf(text.c_str(), "%dx%d%n", &first, &second, &end) != 2 ||
      static_cast<std::size_t>(end) != text.size() || first < 1 || second < 1)
    throw argument_error(
        fmt::format("{} is '{}'; it must be two whole numbers, such as 128x256.", option, text));
  return {first, second};
}

GemmConstraints constraints(Options const& o) {
  auto const& c = o.choice;
  GemmConstraints wanted{.configuration = c.configuration, .split_k = c.split_k, .group = c.group};
  if (!c.kernel.empty())
    wanted.kernel = named<GemmKernel>(c.kernel, {{"sm80", GemmKernel::sm80}, {"sm90", GemmKernel::sm90}});
  if (!c.schedule.empty())
    wanted.schedule = named<Schedule>(c.schedule, {{"basic", Schedule::basic},
                                                   {"cooperative", Schedule::cooperative},
                                                   {"pingpong", Schedule::pingpong}});
  if (!c.raster.empty())
    wanted.raster = named<Raster>(c.raster, {{to_string(Raster::along_m), Raster::along_m},
                                             {to_string(Raster::along_n), Raster::along_n}});
  if (!c.widths.empty()) wanted.fitted = named<bool>(c.widths, {{"one", false}, {"two", true}});
  if (!c.tile.empty()) std::tie(wanted.block_m, wanted.block_n) = extents("--tile", c.tile);
  if (!c.cluster.empty()) std::tie(wanted.cluster_m, wanted.cluster_n) = extents("--cluster", c.cluster);
  return wanted;
}

/// The operands as kernels and reference read them; those of no file are empty until generate_missing.
struct Problem {
  Operand a, b, c, bias;
  std::vector<float> scales;
  GemmArguments arguments;  ///< without pointers
};

using Shape = std::vector<std::int64_t>;
Shape batched(std::int64_t batch, Shape shape) {
  if (batch > 1) shape.insert(shape.begin(), batch);
  return shape;
}

Problem read_problem(Options o) {
  std::optional<DType> in, in_b, out;
  if (!o.dtype.empty()) in = parse_dtype(o.dtype);
  if (!o.dtype_b.empty()) in_b = parse_dtype(o.dtype_b);
  if (!o.out_type.empty()) out = parse_dtype(o.out_type);
  if (o.a.empty() && o.b.empty() && !in) in = DType::bf16;
  if (!in_b) in_b = in;

  // Reads a file of `rank` axes, or one more, the batches, in front; gives the strides between these.
  std::int64_t batch = o.batch;
  auto const matrices = [&](char const* option, std::string const& file, std::optional<DType> type,
                            std::int64_t& rows, char const* rows_name, std::int64_t& columns,
                            char const* columns_name) {
    Operand operand = read_operand(option, file, type, 2, 3);
    Shape const& shape = operand.shape;
    if (shape.size() == 3) agree(batch, shape[0], "batch", file);
    agree(rows, shape[shape.size() - 2], rows_name, file);
    agree(columns, shape[shape.size() - 1], columns_name, file);
    return operand;
  };
  std::optional<Operand> a, b, c, bias;
  if (!o.a.empty()) {
    a = o.trans_a ? matrices("--a", o.a, in, o.k, "k", o.m, "m")
                  : matrices("--a", o.a, in, o.m, "m", o.k, "k");
    in = a->type;
    if (!in_b) in_b = in;
  }
  if (!o.b.empty()) {
    b = o.trans_b ? matrices("--b", o.b, in_b, o.n, "n", o.k, "k")
                  : matrices("--b", o.b, in_b, o.k, "k", o.n, "n");
    in_b = b->type;
    if (!in) in = in_b;
  }
  if (!out) out = default_output(*in);
  if (!o.c.empty()) {
    c = matrices("--c", o.c, out, o.m, "m", o.n, "n");
    if (o.beta == 0) o.beta = 1;
  }
  if (!o.bias.empty()) {
    bias = read_operand("--bias", o.bias, out, 1, 1);
    agree(o.n, bias->shape[0], "n", o.bias);
  }
  for (auto* const extent : {&o.m, &o.n, &o.k})
    if (*extent == 0) *extent = kDefaultExtent;
  if (batch == 0) batch = 1;
  for (auto const& [type, transposed, option] :
       {std::tuple(*in, !o.trans_a, "A is stored as (k, m) with --trans-a"),
        std::tuple(*in_b, o.trans_b, "B is stored as (k, n) without --trans-b")})
    if (!transposed && (type == DType::tf32 || bits(type) == 8))
      throw argument_error(
          fmt::format("gemm: {}, and of {} the tensor cores read only what is contiguous along k.", option,
                      to_string(type)));

  Problem p;
  auto const shared = [&](std::optional<Operand> const& file) { return file && file->shape.size() == 2; };
  p.arguments = {.in = *in,
                 .in_b = *in_b,
                 .out = *out,
                 .a_major = o.trans_a ? Major::mn : Major::k,
                 .b_major = o.trans_b ? Major::k : Major::mn,
                 .m = o.m,
                 .n = o.n,
                 .k = o.k,
                 .batch = batch,
                 .alpha = o.alpha,
                 .beta = o.beta,
                 .activation = named<Activation>(o.activation, {{"none", Activation::none},
                                                                {"relu", Activation::relu},
                                                                {"gelu", Activation::gelu},
                                                                {"silu", Activation::silu}})};
  if (shared(a)) p.arguments.a_batch_stride = 0;
  if (shared(b)) p.arguments.b_batch_stride = 0;
  if (shared(c)) p.arguments.c_batch_stride = 0;
  auto const or_empty = [](std::optional<Operand>& file, DType type, Shape shape) {
    return file ? std::move(*file) : Operand{type, std::move(shape), {}};
  };
  p.a = or_empty(a, *in, batched(batch, o.trans_a ? Shape{o.k, o.m} : Shape{o.m, o.k}));
  p.b = or_empty(b, *in_b, batched(batch, o.trans_b ? Shape{o.n, o.k} : Shape{o.k, o.n}));
  p.c = or_empty(c, *out, o.beta != 0 ? batched(batch, {o.m, o.n}) : Shape{});
  p.bias = or_empty(bias, *out, {});
  p.scales = {o.scale_a.value_or(1), o.scale_b.value_or(1)};
  return p;
}

void generate_missing(Problem& p, std::uint64_t seed) {
  std::uint64_t stream = 0;
  for (Operand* const operand : {&p.a, &p.b, &p.c}) {
    ++stream;
    if (operand->data.empty() && !operand->shape.empty())
      *operand = generate(operand->shape, operand->type, seed, stream);
  }
}

/// The arguments with the operands at these addresses; null for those that the problem does not have.
struct Addresses {
  void const *a, *b, *c, *bias;
  void* d;
  float const* scales;
};
GemmArguments with_addresses(Problem const& p, Options const& o, Addresses const& at) {
  GemmArguments g = p.arguments;
  g.a = at.a, g.b = at.b, g.d = at.d;
  g.c = g.beta != 0 ? at.c : nullptr;
  g.bias = o.bias.empty() ? nullptr : at.bias;
  g.scale_a = o.scale_a ? at.scales : nullptr;
  g.scale_b = o.scale_b ? at.scales + 1 : nullptr;
  return g;
}

nlohmann::ordered_json describe(GemmArguments const& g, Options const& o) {
  return {{"kernel", "gemm"},
          {"m", g.m},
          {"n", g.n},
          {"k", g.k},
          {"batch", g.batch},
          {"in", to_string(g.in)},
          {"in_b", to_string(g.in_b)},
          {"out", to_string(g.out)},
          {"trans_a", o.trans_a},
          {"trans_b", o.trans_b},
          {"alpha", g.alpha},
          {"beta", g.beta},
          {"bias", g.bias != nullptr},
          {"scale_a", o.scale_a.value_or(1)},
          {"scale_b", o.scale_b.value_or(1)},
          {"activation", to_string(g.activation)},
          {"seed", o.machine.seed}};
}

nlohmann::ordered_json describe(GemmCandidate const& candidate) {
  GemmChoice const& choice = candidate.choice;
  nlohmann::ordered_json j = {
      {"kernel", to_string(choice.kernel)}, {"index", choice.configuration}, {"name", candidate.name}};
  if (!candidate.refused.empty()) {
    j["refused"] = candidate.refused;
    return j;
  }
  GemmCost const& cost = choice.cost;
  j["microseconds"] = {{"total", cost.total},      {"launch", cost.launch}, {"fill", cost.fill},
                       {"tensor", cost.tensor},    {"l2", cost.l2},         {"dram", cost.dram},
                       {"epilogue", cost.epilogue}};
  j["tiles"] = cost.tiles;
  j["waves"] = cost.waves;
  if (choice.kernel == GemmKernel::sm90) {
    j["raster"] = to_string(choice.tiling.order().raster);
    j["group"] = choice.tiling.order().group;
    j["clusters"] = choice.clusters;
    j["share"] = cost.share;
    if (choice.tiling.fitted()) j["narrower"] = choice.tiling.tiles - choice.tiling.first_narrow;
  }
  return j;
}

/// Prints the plan of a problem whose operands are aligned as allocations are; touches no memory of the
/// machine.
void explain(Problem const& p, Options const& o, Machine const& machine) {
  auto const somewhere = [](std::uintptr_t i) { return reinterpret_cast<void*>(i << 20); };
  GemmArguments const g = with_addresses(p, o,
                                         {somewhere(1), somewhere(2), somewhere(3), somewhere(4),
                                          somewhere(5), static_cast<float const*>(somewhere(6))});
  check(g, machine.compute_capability());
  GemmPlan const plan = plan_gemm(g, machine.properties(), constraints(o));
  if (!o.tiles_drawing.empty()) write_file(o.tiles_drawing, draw_tiling(g, plan.chosen()));
  if (!o.json) {
    fmt::print("{}, {} multiprocessors\n{}", machine.name(), machine.multiprocessors(),
               to_string(plan, /*all=*/o.lines));
    return;
  }
  nlohmann::ordered_json out = describe(g, o);
  out["machine"] = machine.name();
  out["chosen"] = describe(plan.candidates.front());
  out["reason"] = plan.reason;
  out["candidates"] = nlohmann::ordered_json::array();
  for (auto const& candidate : plan.candidates) out["candidates"].push_back(describe(candidate));
  fmt::print("{}\n", dump(out));
}

/// Times every candidate beside its prediction, the soonest first.
void measure(GemmArguments const& arguments, Options const& o, Machine const& machine) {
  if (!o.tiles_drawing.empty())
    throw argument_error("gemm: --draw-tiles draws the tiles of one choice, and --measure times several.");
  if (machine.is_simulated())
    throw argument_error("gemm: --measure is asked of " + machine.name() +
                         "; only a GPU has times to measure.");
  struct Measured {
    double microseconds;
    GemmCandidate const* candidate;
  };
  GemmPlan const plan = plan_gemm(arguments, machine.properties(), constraints(o));
  std::vector<Measured> all;
  for (GemmCandidate const& candidate : plan.candidates) {
    if (!candidate.refused.empty()) break;
    double const milliseconds =
        time_launches(machine, o.repeat, [&] { gemm(machine, arguments, candidate.choice); });
    all.push_back({1e3 * milliseconds, &candidate});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](Measured const& x, Measured const& y) { return x.microseconds < y.microseconds; });
  if (o.json) {
    nlohmann::ordered_json out = describe(arguments, o);
    out["machine"] = machine.name();
    for (auto const& [microseconds, candidate] : all) {
      out["candidates"].push_back(describe(*candidate));
      out["candidates"].back()["measured_microseconds"] = microseconds;
    }
    fmt::print("{}\n", dump(out));
    return;
  }
  fmt::print("{}\n{}\n\n{:>11} {:>12}  configuration\n", machine.name(), plan.problem, "measured us",
             "predicted us");
  for (auto const& [microseconds, candidate] : all)
    fmt::print("{:>11.2f} {:>12.2f}  {}: {}{}\n", microseconds, candidate->choice.cost.total,
               candidate->choice.configuration, candidate->name,
               candidate == &plan.candidates.front() ? " (chosen)" : "");
}

void run(Options const& o) {
  Problem p = read_problem(o);
  ProgressBar bar;
  Machine const machine = make_machine(o.machine, bar);
  if (o.explain) {
    for (auto const& [option, file] : {std::pair("--report", o.machine.report),
                                       {"--trace", o.machine.trace},
                                       {"--svg", o.machine.svg},
                                       {"--output", o.output}})
      if (!file.empty())
        throw argument_error(fmt::format("{} is of a run, and --explain runs nothing.", option));
    return explain(p, o, machine);
  }

  generate_missing(p, o.machine.seed);
  auto const a = upload(machine, p.a, "A"), b = upload(machine, p.b, "B"), c = upload(machine, p.c, "C"),
             bias = upload(machine, p.bias, "bias");
  Buffer<float> const scales(machine, p.scales, "scales");
  GemmArguments const host = with_addresses(
      p, o,
      {p.a.data.data(), p.b.data.data(), p.c.data.data(), p.bias.data.data(), nullptr, p.scales.data()});
  Operand d{host.out, batched(host.batch, {host.m, host.n}), {}};
  Buffer<std::byte> const d_buffer(machine, host.batch * host.m * host.n * (bits(host.out) / 8), "D");
  GemmArguments const arguments =
      with_addresses(p, o, {a.data(), b.data(), c.data(), bias.data(), d_buffer.data(), scales.data()});
  check(arguments, machine.compute_capability());
  if (o.measure) return measure(arguments, o, machine);
  GemmChoice const choice = choose_gemm(arguments, machine.properties(), constraints(o));
  if (!o.tiles_drawing.empty()) write_file(o.tiles_drawing, draw_tiling(arguments, choice));
  double const milliseconds =
      checked_launches(machine, o.machine, bar, o.repeat, o.json, [&] { gemm(machine, arguments, choice); });
  d.data = d_buffer.download();
  if (!o.output.empty()) write_operand(o.output, d);

  auto const rows =
      rows_to_check(host.batch * host.m, static_cast<double>(host.n) * static_cast<double>(host.k));
  auto const comparison = reference::compare(rows_as_doubles(d, host.n, rows), reference::gemm(host, rows),
                                             reference::largest_finite(host.out));
  Verdict verdict;
  verdict.problem = describe(host, o);
  verdict.headline = to_string(host);
  verdict.configuration_index = choice.configuration;
  auto const index = static_cast<std::size_t>(choice.configuration);
  verdict.configuration = choice.kernel == GemmKernel::sm90 ? to_string(gemm_sm90_configurations()[index])
                                                            : to_string(gemm_configurations()[index]);
  verdict.milliseconds = milliseconds;
  verdict.multiply_adds = static_cast<double>(host.batch) * static_cast<double>(host.m) *
                          static_cast<double>(host.n) * static_cast<double>(host.k);
  verdict.rows = host.batch * host.m;
  verdict.rows_checked = static_cast<std::int64_t>(rows.size());
  auto const worst_row = rows[static_cast<std::size_t>(comparison.worst / host.n)];
  verdict.parts = {
      {"D", comparison,
       fmt::format("{}row {}, column {}", host.batch > 1 ? fmt::format("batch {}, ", worst_row / host.m) : "",
                   worst_row % host.m, comparison.worst % host.n)}};
  verdict.output = o.output;
  write_timeline(o.machine, machine, verdict.configuration);
  print_verdict(verdict, machine, o.json, o.lines);
}

}  // namespace

void add_gemm_command(CLI::App& app) {
  auto const options = std::make_shared<Options>();
  CLI::App& command = *app.add_subcommand(
      "gemm", "Multiply matrices: D = activation(alpha A B + beta C + bias), checked against float64");
  command.footer(kFooter);
  Options& o = *options;
  command.add_option("--a", o.a, "A from FILE.npy or FILE.safetensors:NAME; generated if left out");
  command.add_option("--b", o.b, "B, likewise");
  command.add_option("--c", o.c, "C, likewise; --beta is then 1 unless given");
  command.add_option("--bias", o.bias, "a row that is added to every row of D");
  command.add_option("--m", o.m, "rows of D (256 where no file says it)")->check(whole_number(1));
  command.add_option("--n", o.n, "columns of D (256)")->check(whole_number(1));
  command.add_option("--k", o.k, "columns of A, rows of B (256)")->check(whole_number(1));
  command.add_option("--batch", o.batch, "matrices, each multiplied for itself (1)")->check(whole_number(1));
  command.add_option(
      "--dtype,--in", o.dtype,
      "of A and B, to which files are rounded: f16, bf16, tf32, e4m3 or e5m2 (that of the files, or "
      "bf16)");
  command.add_option("--in-b", o.dtype_b, "of B, where it is not A's: one of A and B e4m3, the other e5m2");
  command.add_option("--out-type,--out", o.out_type,
                     "of D, C and bias: f16, bf16 or f32 (that of A; f32 of tf32, bf16 of fp8)");
  command.add_flag("--trans-a", o.trans_a, "A is stored as (k, m)");
  command.add_flag("--trans-b", o.trans_b, "B is stored as (n, k)");
  command.add_option("--alpha", o.alpha)->capture_default_str();
  command.add_option("--beta", o.beta)->capture_default_str();
  command.add_option("--scale-a", o.scale_a,
                     "a factor, read by the kernel from memory, as fp8 has of a tensor");
  command.add_option("--scale-b", o.scale_b, "likewise");
  command
      .add_option("--activation", o.activation, "of each element of D: none, relu, gelu (by tanh) or silu")
      ->check(CLI::IsMember({"none", "relu", "gelu", "silu"}))
      ->capture_default_str();
  command.add_option("--output", o.output, "write D to FILE.npy or FILE.safetensors:NAME");
  command.add_option("--repeat", o.repeat, "launches to time")->check(whole_number(1))->capture_default_str();
  command.add_flag(
      "--explain", o.explain,
      "print the configurations that could compute the problem, what each is predicted to take and why "
      "one is chosen, and run nothing; with --lines those that could not, too");
  command
      .add_option("--draw-tiles", o.tiles_drawing,
                  "draw D as gemm_sm90 cuts it into tiles, each in the colour of its wave, as SVG; with "
                  "--explain, too")
      ->check(file_name());
  command.add_flag(
      "--measure", o.measure,
      "on a GPU: time every configuration that could compute the problem, --repeat launches of each, "
      "beside what is predicted");
  auto const choice = [&](char const* name, auto& value, char const* text) {
    return command.add_option(name, value, text)->group("choice");
  };
  choice("--kernel", o.choice.kernel, "sm90 or sm80")->check(CLI::IsMember({"sm90", "sm80"}));
  choice("--config", o.choice.configuration,
         "index of gemm_sm90's configuration, as --explain and `tegula info` show")
      ->check(whole_number(0));
  choice("--schedule", o.choice.schedule, "basic, cooperative or pingpong")
      ->check(CLI::IsMember({"basic", "cooperative", "pingpong"}));
  choice("--tile", o.choice.tile, "rows and columns of D that a CTA computes at a time: 128x256");
  choice("--cluster", o.choice.cluster, "CTAs of a cluster along m and n: 2x1");
  choice("--split-k", o.choice.split_k, "CTAs that share k")->check(whole_number(1));
  choice("--raster", o.choice.raster, "the axis that tiles follow each other along: m or n")
      ->check(CLI::IsMember({"m", "n"}));
  choice("--group", o.choice.group, "tiles across that axis, side by side")->check(whole_number(1));
  choice("--widths", o.choice.widths,
         "of gemm_sm90's tiles: one, or two where the longest share of a cluster is then shorter (left out: "
         "where that is predicted to pay)")
      ->check(CLI::IsMember({"one", "two"}));
  add_machine_options(command, o.machine);
  command.add_flag("--lines", o.lines, "what a simulated machine counted, by source line");
  command.add_flag("--json", o.json, "print one JSON object");
  command.callback([options] { run(*options); });
}

}  // namespace tegula::tool
