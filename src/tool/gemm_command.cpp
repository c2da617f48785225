#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "commands.hpp"
#include "draw_tiling.hpp"
#include "gemm_problem.hpp"
#include "grouped_gemm_command.hpp"
#include "kernel_run.hpp"
#include "output.hpp"
#include "tegula/device/gemm_plan.hpp"
#include "tegula/device/launch.hpp"
#include "tegula/device/selection.hpp"
#include "tegula/io/text.hpp"

namespace tegula::tool {
namespace {

constexpr char const* kFooter =
    R"(A is (m, k), or (k, m) with --trans-a; B is (k, n), or (n, k) with --trans-b; C and D are (m, n); bias is (n).
With --batch each of A, B, C and D has one axis more, in front; a file of A, B or C without it serves all batches.
Every array is dense and row-major. D = activation(alpha scale_a scale_b A B + beta C + bias) is checked against
float64, within a bound derived from the arithmetic. A result beyond it, or a finding of the checker, exits with 1.

With --groups, or --scales 1x128,128x128 or 1x128,1x128, operands are generated, B is (n, k), and D = A B^T, or with
--beta 1 D = A B^T + C, for each group. Groups without rows give a D of none. With --scales mx or nv (sm_100) B is
(n, k), and A and B are quantised: the values of files, or generated ones. With nv those of a file are divided by
(their largest / 2688) before, and --scale-a or --scale-b multiplied by it, so that the scales of blocks fill the range
of ue4m3. The check begins with what was quantised, or rounded from a file: values that this lost are counted in a note.

The kernel and its configuration are chosen by a model of the GPU, which --explain shows; the options under "choice"
decide parts of it by hand.

Examples:
  tegula gemm --m 512 --n 512 --k 256
  tegula gemm --m 100 --n 70 --k 33 --dtype f16 --out-type f32 --trans-b --device sim --arch sm80 --json
  tegula gemm --in e4m3 --in-b e5m2 --trans-b --scale-a 0.5 --scale-b 2 --activation gelu --batch 3 --m 64 --n 96 --k 128 --out bf16
  tegula gemm --a x.npy --b model.safetensors:encoder.weight --trans-b --bias model.safetensors:encoder.bias --dtype f16 --output y.npy
  tegula gemm --m 4096 --n 4096 --k 4096 --trans-b --device sim --explain
  tegula gemm --m 4096 --n 4096 --k 4096 --trans-b --device sim --explain --tile 128x256 --draw-tiles tiles.svg
  tegula gemm --m 8192 --n 8192 --k 8192 --device cuda --schedule pingpong --repeat 20
  tegula gemm --m 200 --n 384 --k 512 --in e4m3 --scales 1x128,128x128
  tegula gemm --m 200 --n 384 --k 512 --in e2m1 --scales nv --device sim --arch sm100
  tegula gemm --groups 100,0,17 --n 256 --k 512 --in bf16
  tegula gemm --groups 128,17 --n 256 --k 512 --scales mx --device sim --arch sm100)";

constexpr std::int64_t kMostInt = std::numeric_limits<int>::max();

/// Two whole numbers, as the example has them.
std::pair<int, int> extents(char const* option, std::string const& text, char const* example) {
  auto const read = read_extents(text);
  if (!read)
    throw argument_error(
        fmt::format("{} is {}; it must be two whole numbers from 1 to 2^31 - 1, such as {}.",
                    option, io::in_quotes(text), example));
  return {read->first, read->second};
}

GemmConstraints constraints(GemmOptions const& o) {
  auto const& c = o.choice;
  GemmConstraints wanted{.configuration = c.configuration, .split_k = c.split_k, .group = c.group};
  if (!c.kernel.empty())
    wanted.kernel = named<FamilyId>(
        c.kernel, {{"sm80", gemm_sm80},
                   {"sm90", gemm_sm90},
                   {"sm100", has_block_scales(o) ? FamilyId(scaled_gemm_sm100) : gemm_sm100}});
  if (!c.schedule.empty())
    wanted.schedule = named<Schedule>(c.schedule, {{"basic", Schedule::basic},
                                                   {"cooperative", Schedule::cooperative},
                                                   {"pingpong", Schedule::pingpong}});
  if (!c.raster.empty())
    wanted.raster = named<Raster>(c.raster, {{to_string(Raster::along_m), Raster::along_m},
                                             {to_string(Raster::along_n), Raster::along_n}});
  if (!c.widths.empty()) wanted.fitted = named<bool>(c.widths, {{"one", false}, {"two", true}});
  if (c.tile) std::tie(wanted.block_m, wanted.block_n) = extents("--tile", *c.tile, "128x256");
  if (c.cluster)
    std::tie(wanted.cluster_m, wanted.cluster_n) = extents("--cluster", *c.cluster, "2x1");
  return wanted;
}

/// choose(constraints of the options), with the options in front of why none answers to them.
template <class Choose> auto chosen_by(GemmOptions const& o, Choose&& choose) {
  auto const& c = o.choice;
  GemmConstraints const wanted = constraints(o);
  return chosen_as_asked({{"--kernel", c.kernel},
                          {"--config", text_of(c.configuration)},
                          {"--schedule", c.schedule},
                          {"--tile", c.tile.value_or("")},
                          {"--cluster", c.cluster.value_or("")},
                          {"--split-k", text_of(c.split_k)},
                          {"--raster", c.raster},
                          {"--group", text_of(c.group)},
                          {"--widths", c.widths}},
                         [&] { return choose(wanted); });
}

nlohmann::ordered_json describe(GemmArguments const& g, GemmOptions const& o,
                                GemmProblem const& p) {
  nlohmann::ordered_json j = {{"kernel", "gemm"},
                              {"m", g.m},
                              {"n", g.n},
                              {"k", g.k},
                              {"batch", g.batch},
                              {"in", to_string(g.in)},
                              {"in_b", to_string(*g.in_b)},
                              {"out", to_string(*g.out)},
                              {"trans_a", o.trans_a},
                              {"trans_b", g.b_major == Major::k},
                              {"alpha", g.alpha},
                              {"beta", g.beta},
                              {"bias", g.bias != nullptr},
                              {"scale_a", p.scale_a.value_or(1)},
                              {"scale_b", p.scale_b.value_or(1)},
                              {"scales", has_block_scales(o) ? o.scales : "none"},
                              {"activation", to_string(g.activation)},
                              {"seed", o.machine.seed}};
  if (p.tensor_factor_a != 1) j["tensor_factor_a"] = p.tensor_factor_a;
  if (p.tensor_factor_b != 1) j["tensor_factor_b"] = p.tensor_factor_b;
  return j;
}

nlohmann::ordered_json describe(GemmCandidate const& candidate) {
  GemmChoice const& choice = candidate.choice;
  GemmCost const& cost = choice.cost;
  nlohmann::ordered_json j;
  j["microseconds"] = {{"total", cost.total},      {"launch", cost.launch}, {"fill", cost.fill},
                       {"tensor", cost.tensor},    {"l2", cost.l2},         {"dram", cost.dram},
                       {"epilogue", cost.epilogue}};
  j["tiles"] = cost.tiles;
  j["waves"] = cost.waves;
  if (choice.kernel == gemm_sm90) {
    j["raster"] = to_string(choice.tiling.order().raster);
    j["group"] = choice.tiling.order().group;
    j["clusters"] = choice.clusters;
    j["share"] = cost.share;
    j["learned"] = cost.correction;
    if (choice.parts > 1) j["parts"] = choice.parts;
    if (choice.tiling.fitted()) j["narrower"] = choice.tiling.tiles - choice.tiling.first_narrow;
  }
  return j;
}

/// Refuses a problem that no kernel of the machine computes, whatever is asked for of the choice.
void require_computed(GemmArguments const& g, GemmOptions const& o, Machine const& machine) {
  auto const choose = [&](GemmArguments const& arguments) {
    check(arguments, machine.compute_capability());
    choose_gemm(arguments, machine.properties());
  };
  auto const computed = [&](auto const& change) {
    return [&, change] {
      GemmArguments other = g;
      change(other);
      try {
        choose(other);
        return true;
      } catch (argument_error const&) {
        return false;
      }
    };
  };
  std::vector<Alternative> alternatives;
  for (DType const type : {DType::bf16, DType::f16, DType::f32})
    alternatives.push_back(
        {"--out-type", to_string(type), computed([=](GemmArguments& other) { other.out = type; })});
  constexpr DType kOperandTypes[] = {DType::bf16, DType::f16,  DType::tf32, DType::e4m3,
                                     DType::e5m2, DType::e2m3, DType::e3m2, DType::e2m1};
  for (DType const type : kOperandTypes)
    alternatives.push_back(
        {"--in-b", to_string(type), computed([=](GemmArguments& other) { other.in_b = type; })});
  // What follows from A's type where it is not said does so for another one, too.
  for (DType const type : kOperandTypes)
    alternatives.push_back({"--dtype", to_string(type), computed([&, type](GemmArguments& other) {
                              other.in = type;
                              if (!o.dtype_b && o.b.empty()) other.in_b = type;
                              if (!o.out_type) other.out = default_output(type);
                            })});
  alternatives.push_back({"--activation", "none", computed([](GemmArguments& other) {
                            other.activation = Activation::none;
                          })});
  tool::require_computed({{"--dtype", o.dtype.value_or("")},
                          {"--in-b", o.dtype_b.value_or("")},
                          {"--out-type", o.out_type.value_or("")},
                          {"--scales", o.scales},
                          {"--activation", o.activation == "none" ? "" : o.activation}},
                         alternatives, [&] { choose(g); });
}

/// The problem with operands that are aligned as allocations are, for what touches no
/// memory; checked.
GemmArguments before_allocation(GemmProblem const& p, GemmOptions const& o,
                                Machine const& machine) {
  GemmArguments const g =
      with_addresses(p, o,
                     {somewhere(1), somewhere(2), somewhere(3), somewhere(4), somewhere(5),
                      static_cast<float const*>(somewhere(6)), somewhere(7), somewhere(8)});
  std::vector<Said> all = types_said(o, machine);
  all.insert(all.end(), p.extents.begin(), p.extents.end());
  named_as_said(all, [&] { check(g, machine.compute_capability()); });
  require_computed(g, o, machine);
  return g;
}

/// Draws the tiles of a choice, where that is asked for.
void draw_tiles(GemmOptions const& o, GemmArguments const& g, GemmChoice const& choice) {
  if (o.tiles_drawing.empty()) return;
  std::string const drawing =
      chosen_as_asked({{"--draw-tiles", o.tiles_drawing}}, [&] { return draw_tiling(g, choice); });
  write_output("--draw-tiles", o.tiles_drawing, drawing);
}

/// Prints the plan of a checked problem, with as large a workspace as anything takes.
void explain(GemmProblem const& p, GemmOptions const& o, Machine const& machine) {
  GemmArguments g = before_allocation(p, o, machine);
  g.workspace_bytes = std::numeric_limits<std::int64_t>::max();
  GemmPlan const plan = chosen_by(
      o, [&](GemmConstraints const& wanted) { return plan_gemm(g, machine.properties(), wanted); });
  draw_tiles(o, g, plan.chosen());
  print_plan(plan, machine, o, describe(g, o, p),
             [](GemmCandidate const& c) { return describe(c); });
}

/// Bytes of workspace that every candidate may use: as many as cuBLAS is commonly given on Hopper.
constexpr std::int64_t kMeasuredWorkspace = 32 << 20;

/// Times every candidate beside its prediction, the soonest first.
void measure(GemmArguments const& arguments, GemmProblem const& p, GemmOptions const& o,
             Machine const& machine) {
  if (machine.is_simulated())
    throw argument_error("gemm: --measure is asked of " + machine.name() +
                         "; only a GPU has times to measure.");
  struct Measured {
    double microseconds;
    GemmCandidate const* candidate;
  };
  GemmPlan const plan = chosen_by(o, [&](GemmConstraints const& wanted) {
    return plan_gemm(arguments, machine.properties(), wanted);
  });
  std::vector<Measured> all;
  for (GemmCandidate const& candidate : plan.candidates) {
    if (!candidate.refused.empty()) break;
    double const milliseconds =
        time_launches(machine, o.repeat, [&] { gemm(machine, arguments, candidate.choice); });
    all.push_back({1e3 * milliseconds, &candidate});
  }
  std::stable_sort(all.begin(), all.end(), [](Measured const& x, Measured const& y) {
    return x.microseconds < y.microseconds;
  });
  if (o.json) {
    nlohmann::ordered_json out = describe(arguments, o, p);
    out["machine"] = machine.name();
    for (auto const& [microseconds, candidate] : all) {
      out["candidates"].push_back(
          described(*candidate, [](GemmCandidate const& c) { return describe(c); }));
      out["candidates"].back()["measured_microseconds"] = microseconds;
    }
    print("{}\n", dump(out));
    return;
  }
  print("{}\n{}\n\n{:>11} {:>12}  configuration\n", machine.name(), plan.problem, "measured us",
        "predicted us");
  for (auto const& [microseconds, candidate] : all)
    print("{:>11.2f} {:>12.2f}  {}: {}{}\n", microseconds, candidate->choice.cost.total,
          candidate->choice.configuration, candidate->name,
          candidate == &plan.candidates.front() ? " (chosen)" : "");
}

/// Refuses files that cannot be written, or are meant for two things, before any work.
void check_files(GemmOptions const& o) {
  std::vector<io::NamedPath> targets = machine_targets(o.machine),
                             inputs = machine_inputs(o.machine);
  add_array_target(targets, "--output", o.output);
  if (!o.tiles_drawing.empty()) targets.push_back({"--draw-tiles", o.tiles_drawing});
  for (auto const& [option, file] :
       {std::pair("--a", &o.a), {"--b", &o.b}, {"--c", &o.c}, {"--bias", &o.bias}})
    add_array_file(inputs, option, *file);
  io::check_targets(targets, inputs);
}

/// Refuses a problem that takes too much memory, before anything is generated.
void require_memory_of(GemmProblem const& p, GemmArguments const& g, Operand const& d,
                       Machine const& machine) {
  Footprint all;
  for (Operand const* const operand : {&p.a, &p.b, &p.c, &p.bias, &d}) all.add(*operand);
  // B of one matrix in float64, with block scales as their products and exponents.
  double const of_element = g.block_scale.block != 0 ? 24 : 8;
  all.checking = of_element * static_cast<double>(g.n) * static_cast<double>(g.k) +
                 bytes_of_checked_rows(g.batch * g.m, g.n);
  require_memory_of_run(
      fmt::format("gemm: --m {}, --n {}, --k {}, --batch {}", g.m, g.n, g.k, g.batch), all,
      machine);
}

/// The command with scales of blocks, or of groups, which has fewer forms.
void run_grouped(GemmOptions const& o) {
  auto const& c = o.choice;
  auto const said = [](std::optional<float> const& x) { return x ? fmt::format("{}", *x) : ""; };
  for (auto const& [option, value] :
       {std::pair<char const*, std::string>("--a", o.a),
        {"--b", o.b},
        {"--c", o.c},
        {"--bias", o.bias},
        {"--batch", o.batch.value == 0 ? "" : std::to_string(o.batch.value)},
        {"--trans-a", o.trans_a ? "given" : ""},
        {"--alpha", o.alpha == 1 ? "" : said(o.alpha)},
        {"--scale-a", said(o.scale_a)},
        {"--scale-b", said(o.scale_b)},
        {"--activation", o.activation == "none" ? "" : o.activation},
        {"--draw-tiles", o.tiles_drawing},
        {"--measure", o.measure ? "given" : ""},
        {"--kernel", c.kernel},
        {"--schedule", c.schedule},
        {"--raster", c.raster},
        {"--group", text_of(c.group)},
        {"--widths", c.widths}})
    if (!value.empty())
      throw argument_error(fmt::format(
          "gemm: {} is {}; with --scales or --groups it must be left out.", option, value));
  if (o.beta && *o.beta != 0 && *o.beta != 1)
    throw argument_error(
        fmt::format("gemm: --beta is {}; with --scales or --groups it must be 0 or 1.", *o.beta));
  std::pair<int, int> tile, cluster{1, 1};
  if (c.tile) tile = extents("--tile", *c.tile, "128x256");
  if (c.cluster) cluster = extents("--cluster", *c.cluster, "2x1");
  GroupedGemmCommand command{.machine = o.machine,
                             .scales = o.scales,
                             .grouping = o.grouping,
                             .sizes = o.groups,
                             .in = o.dtype,
                             .in_b = o.dtype_b,
                             .out = o.out_type,
                             .m = o.m.value,
                             .n = o.n.value,
                             .k = o.k.value,
                             .adds_c = o.beta == 1,
                             .output = o.output,
                             .repeat = o.repeat,
                             .json = o.json,
                             .lines = o.lines,
                             .explain = o.explain,
                             .configuration = c.configuration,
                             .split_k = c.split_k,
                             .asked = {{"--config", text_of(c.configuration)},
                                       {"--tile", c.tile.value_or("")},
                                       {"--cluster", c.cluster.value_or("")},
                                       {"--split-k", text_of(c.split_k)}}};
  if (c.tile) command.block_m = tile.first, command.block_n = tile.second;
  if (c.cluster) command.cluster_m = cluster.first, command.cluster_n = cluster.second;
  run_grouped_gemm(command);
}

/// Refuses --trans-b where it changes nothing.
void check_trans_b(GemmOptions const& o) {
  if (o.trans_b && (o.groups || !o.scales.empty()))
    throw argument_error(
        fmt::format("gemm: --trans-b is given beside {}, with which B is (n, k) anyway; it must be "
                    "left out.",
                    o.groups ? "--groups" : "--scales " + o.scales));
}

/// --measure times configurations, and gives nothing of a run.
void check_measure(GemmOptions const& o) {
  if (!o.measure) return;
  if (o.explain)
    throw argument_error("gemm: --measure times what --explain runs not; only one can be given.");
  for (auto const& [option, value] :
       {std::pair("--output", &o.output), {"--draw-tiles", &o.tiles_drawing}})
    if (!value->empty())
      throw argument_error(fmt::format(
          "gemm: {} is of one configuration, and --measure times several; leave one of them out.",
          option));
}

void run(GemmOptions const& o) {
  check_machine_options(o.machine, o.explain);
  check_measure(o);
  check_trans_b(o);
  if ((!o.scales.empty() && !has_block_scales(o)) || o.groups || !o.grouping.empty()) {
    check_files(o);
    return run_grouped(o);
  }
  constraints(o);  // what is no choice at all is refused before anything is read
  check_files(o);
  ProgressBar bar;
  Machine const machine = make_machine(o.machine, bar);
  check_lines(o.lines, o.json, o.explain, machine);
  if (o.explain) refuse_files_of_a_run({{"--output", o.output}});
  GemmProblem p = read_problem(o, machine);
  if (o.explain) return explain(p, o, machine);
  GemmArguments const before = before_allocation(p, o, machine);
  Operand d{*before.out, batched(before.batch, {before.m, before.n}), {}};
  require_memory_of(p, before, d, machine);

  generate_missing({&p.a, &p.b, &p.c}, o.machine.seed);
  quantise(p);
  auto const a = upload(machine, p.a, "A"), b = upload(machine, p.b, "B"),
             c = upload(machine, p.c, "C"), bias = upload(machine, p.bias, "bias");
  std::vector<float> const host_scales = {p.scale_a.value_or(1), p.scale_b.value_or(1)};
  Buffer<float> const scales(machine, host_scales, "scales");
  Buffer<std::uint8_t> const block_scale_a(machine, p.block_scale_a, "scales of A"),
      block_scale_b(machine, p.block_scale_b, "scales of B");
  GemmArguments const host =
      with_addresses(p, o,
                     {p.a.data.data(), p.b.data.data(), p.c.data.data(), p.bias.data.data(),
                      nullptr, host_scales.data(), p.block_scale_a.data(), p.block_scale_b.data()});
  Buffer<std::byte> const d_buffer(machine, host.batch * host.m * host.n * (bits(*host.out) / 8),
                                   "D");
  GemmArguments arguments =
      with_addresses(p, o,
                     {a.data(), b.data(), c.data(), bias.data(), d_buffer.data(), scales.data(),
                      block_scale_a.data(), block_scale_b.data()});
  check(arguments, machine.compute_capability());
  Buffer<std::byte> const workspace(
      machine,
      o.measure ? kMeasuredWorkspace
                : chosen_by(o,
                            [&](GemmConstraints const& wanted) {
                              return gemm_workspace_bytes(arguments, machine.properties(), wanted);
                            }),
      "workspace");
  arguments.workspace_bytes = workspace.size();
  if (workspace.size() > 0) arguments.workspace = workspace.data();
  check(arguments, machine.compute_capability());
  if (o.measure) return measure(arguments, p, o, machine);
  GemmChoice const choice = chosen_by(o, [&](GemmConstraints const& wanted) {
    return choose_gemm(arguments, machine.properties(), wanted);
  });
  draw_tiles(o, arguments, choice);
  double const milliseconds = checked_launches(machine, o.machine, bar, o.repeat, o.json,
                                               [&] { gemm(machine, arguments, choice); });
  d.data = d_buffer.download();
  if (!o.output.empty()) write_operand("--output", o.output, d);

  auto const rows = rows_to_check(
      host.batch * host.m, static_cast<double>(host.n) * static_cast<double>(host.k), host.n);
  auto const comparison =
      reference::compare(rows_as_doubles(d, host.n, rows), reference::gemm(host, rows),
                         reference::largest_finite(*host.out));
  Verdict verdict;
  verdict.problem = describe(host, o, p);
  verdict.headline = to_string(host);
  verdict.configuration_index = choice.configuration;
  verdict.configuration = configuration_name(choice.kernel, choice.configuration);
  verdict.milliseconds = milliseconds;
  verdict.multiply_adds = static_cast<double>(host.batch) * static_cast<double>(host.m) *
                          static_cast<double>(host.n) * static_cast<double>(host.k);
  verdict.rows = host.batch * host.m;
  verdict.rows_checked = static_cast<std::int64_t>(rows.size());
  auto const worst_row = rows[static_cast<std::size_t>(comparison.worst / host.n)];
  verdict.parts = {{"D", comparison,
                    fmt::format("{}row {}, column {}",
                                host.batch > 1 ? fmt::format("batch {}, ", worst_row / host.m) : "",
                                worst_row % host.m, comparison.worst % host.n)}};
  for (auto const& [name, factor] : {std::pair("A", p.tensor_factor_a), {"B", p.tensor_factor_b}})
    if (factor != 1)
      verdict.notes.push_back(fmt::format(
          "{} is divided by {} before its blocks are quantised; its scale has that factor", name,
          factor));
  verdict.tell_losses("A", host.in, p.a.lost);
  verdict.tell_losses("B", *host.in_b, p.b.lost);
  verdict.tell_losses("C", *host.out, p.c.lost);
  verdict.tell_losses("bias", *host.out, p.bias.lost);
  verdict.output = o.output;
  write_timeline(o.machine, machine, verdict.configuration);
  print_verdict(verdict, machine, o.json, o.lines);
}

}  // namespace

void add_gemm_command(Command const& app) {
  auto const options = std::make_shared<GemmOptions>();
  Command const command = app.add_command(
      "gemm",
      "Multiply matrices: D = activation(alpha A B + beta C + bias), checked against float64");
  command.footer(kFooter);
  GemmOptions& o = *options;
  command.add_option("--a", o.a, "A, from FILE.npy or FILE.safetensors:NAME; generated if left out")
      .check(file_name());
  command.add_option("--b", o.b, "B, likewise").check(file_name());
  command.add_option("--c", o.c, "C, likewise; if left out, generated where --beta is not 0")
      .check(file_name());
  command
      .add_option("--bias", o.bias,
                  "a row of n elements that is added to every row of D, from such a file")
      .check(file_name());
  auto const extent = [&](char const* name, Extent& value, char const* text) {
    command.add_option(name, value.value, text).check(whole_number(1, kMaxExtent));
  };
  extent(
      "--m", o.m,
      "rows of D (default: as the files have it, else 256; with --groups what their sizes add up to, "
      "with --grouping masked the largest of them)");
  extent("--n", o.n, "columns of D (default: as the files have it, else 256)");
  extent(
      "--k", o.k,
      "columns of A, which are the rows of B (likewise; with --grouping k what the sizes of --groups "
      "add up to)");
  extent("--batch", o.batch,
         "number of products, each of its own matrices (default: as the files have it, else 1)");
  command.add_text(
      "--dtype,--in", o.dtype,
      "type of A and B: f16, bf16, tf32 (not with --groups), e4m3 or e5m2; with --scales of 128 e4m3 or "
      "e5m2; with mx e4m3, e5m2, e2m3, e3m2 (these two not with --groups) or e2m1; with nv e2m1. Files of "
      "another type are rounded to it. (Default: that of the files, else bf16; with mx and scales of "
      "128 e4m3, with nv e2m1)");
  command.add_text(
      "--in-b", o.dtype_b,
      "type of B where it is not A's: of e4m3 and e5m2 the other one; with --scales mx e4m3 beside e5m2, "
      "and beside e4m3 any of its types (default: --dtype, else that of B's file, else A's; with "
      "--scales or --groups beside e5m2 e4m3)");
  command.add_text(
      "--out-type,--out", o.out_type,
      "type of D, C and bias: f16, bf16 or f32 (default: A's; f32 where A is tf32, bf16 where it "
      "has 8 bits or fewer; with --groups or scales of 128 f32 where only that is computed)");
  command.add_flag("--trans-a", o.trans_a, "A is stored as (k, m)");
  command.add_flag("--trans-b", o.trans_b,
                   "B is stored as (n, k), as it is with --scales or --groups anyway");
  command.add_option("--alpha", o.alpha, "factor of A B").check(real_number()).show_default();
  command.add_option("--beta", o.beta, "factor of C (default: 1 with --c, else 0)")
      .check(real_number());
  command
      .add_option(
          "--scale-a", o.scale_a,
          "the scale of A, by which fp8 tensors stand for larger numbers: one more factor of A B, "
          "which the kernel reads from memory")
      .check(real_number());
  command.add_option("--scale-b", o.scale_b, "the scale of B, likewise").check(real_number());
  command
      .add_option(
          "--scales", o.scales,
          "scales of blocks along k; B is then (n, k). Of fp8, blocks of 128: 1x128,128x128 (a scale "
          "for each row of A, and for 128 columns of B) or 1x128,1x128 (for each column of B). On "
          "sm_100: mx (ue8m0 for each 32 elements) or nv (ue4m3 for each 16; what files hold is divided "
          "by a factor of the tensor before). none: the kernel of groups, without scales (default: none, "
          "but of groups of fp8 on an sm_90 1x128,128x128, with --grouping k 1x128,1x128)")
      .check(one_of({"none", "1x128,128x128", "1x128,1x128", "mx", "nv"}));
  command.add_text(
      "--groups", o.groups,
      "multiply groups, each with a B of its own, (n, k): how many rows of A each has, such as 300,0,17; "
      "with --grouping k how many columns");
  command
      .add_option(
          "--grouping", o.grouping,
          "what belongs to a group of --groups: contiguous, rows behind those of the group before; "
          "masked, the first rows of a matrix of --m rows; k, columns of A and B (default: "
          "contiguous)")
      .check(one_of({"contiguous", "masked", "k"}));
  command
      .add_option("--activation", o.activation,
                  "a function of each element of D; gelu is the form with tanh")
      .check(one_of({"none", "relu", "gelu", "silu"}))
      .show_default();
  command.add_option("--output", o.output, "write D to FILE.npy or FILE.safetensors:NAME")
      .check(file_name());
  add_repeat(command, o.repeat, o.machine);
  command.add_flag(
      "--explain", o.explain,
      "run nothing: print the configurations that could compute the problem, the time predicted for each, "
      "and why one is chosen; with --lines also those that could not, and why");
  command
      .add_option(
          "--draw-tiles", o.tiles_drawing,
          "draw, as SVG, how gemm_sm90 cuts D into tiles, each in the colour of its wave; also with "
          "--explain")
      .check(own_file_name());
  command.add_flag(
      "--measure", o.measure,
      "on a GPU: time every configuration that could compute the problem, by --repeat launches of each, "
      "and print that beside the predicted time");
  auto const choice = [&](char const* name, auto& value, char const* text) {
    return command.add_option(name, value, text).group("choice");
  };
  choice("--kernel", o.choice.kernel, "the generation that the kernel is written for")
      .check(one_of({"sm100", "sm90", "sm80"}));
  choice("--config", o.choice.configuration,
         "number of the configuration, as --explain and `tegula info` show it; one of gemm_sm80's "
         "needs --kernel sm80")
      .check(whole_number(0, kMostInt));
  choice("--schedule", o.choice.schedule, "how the warpgroups of gemm_sm90 share tiles")
      .check(one_of({"basic", "cooperative", "pingpong"}));
  command
      .add_text("--tile", o.choice.tile,
                "rows and columns of D that a CTA computes at a time, such as 128x256")
      .group("choice");
  command
      .add_text("--cluster", o.choice.cluster, "CTAs of a cluster along m and along n, such as 2x1")
      .group("choice");
  choice(
      "--split-k", o.choice.split_k,
      "number of CTAs that share a tile, each computing a part of k: of one cluster, or of several, "
      "whose sums meet in a workspace")
      .check(whole_number(1, kMostInt));
  choice("--raster", o.choice.raster, "the axis of D along which tiles follow each other")
      .check(one_of({"m", "n"}));
  choice("--group", o.choice.group,
         "how many tiles side by side, across that axis, come before the next ones along it")
      .check(whole_number(1, kMostInt));
  choice(
      "--widths", o.choice.widths,
      "how many widths the tiles of gemm_sm90 have: one, or two (some narrower, where that shortens the "
      "longest share of a cluster; default: two where that is predicted to be faster)")
      .check(one_of({"one", "two"}));
  add_machine_options(command, o.machine);
  command.add_flag("--lines", o.lines, "print what the simulated GPU counted, by source line");
  command.add_flag("--json", o.json, "print one JSON object");
  command.callback([options] { run(*options); });
}

}  // namespace tegula::tool
