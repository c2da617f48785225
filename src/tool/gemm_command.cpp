#include <fmt/format.h>

#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include "commands.hpp"
#include "gemm_choice.hpp"
#include "gemm_problem.hpp"
#include "grouped_gemm_command.hpp"
#include "kernel_run.hpp"
#include "output.hpp"
#include "tegula/device/gemm_plan.hpp"
#include "tegula/device/launch.hpp"

namespace tegula::tool {
namespace {

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
  GemmArguments const before = before_allocation(p, o, machine);
  if (o.explain) return explain(before, p, o, machine);
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
  add_gemm_options(command, *options);
  command.callback([options] { run(*options); });
}

}  // namespace tegula::tool
