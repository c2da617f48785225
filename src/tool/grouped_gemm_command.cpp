#include "grouped_gemm_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "gemm_problem.hpp"
#include "output.hpp"
#include "tegula/device/grouped_gemm.hpp"
#include "tegula/io/text.hpp"

namespace tegula::tool {
namespace {

constexpr std::int64_t kDefaultExtent = 256;

/// The groups' sizes, "3,0,5".
std::vector<int> read_sizes(std::string const& text) {
  if (auto const sizes = read_list(text, 0, kMaxExtent)) return {sizes->begin(), sizes->end()};
  throw argument_error(fmt::format(
      "--groups is {}; it must be whole numbers with commas between them, the rows (or columns) of "
      "each group, as 300,0,17, at most {} in all.",
      io::in_quotes(text), kMaxExtent));
}

Grouping grouping_of(GroupedGemmCommand const& c) {
  if (!c.sizes) return Grouping::none;
  return c.grouping == "masked" ? Grouping::masked
         : c.grouping == "k"    ? Grouping::k
                                : Grouping::contiguous;
}

/// Operands in host memory, and the arguments without pointers: as they are said, and launched.
struct Problem {
  GroupedGemmArguments said, arguments;
  std::vector<int> sizes, ends;
  Operand a, b, c, scale_a, scale_b, d;
  std::vector<std::uint8_t> block_scale_a, block_scale_b;
};

/// The scales that --scales asks for. Where it is left out, an sm_100 has none: those of 128 are
/// multiplied by sm_90's kernel.
void put_scales(GroupedGemmArguments& g, GroupedGemmCommand const& c, int compute_capability) {
  if (c.scales == "none" || (c.scales.empty() && compute_capability >= 100))
    g.scales = Scales::none;
  if (c.scales == "1x128,128x128") g.scales = Scales::rows_by_blocks;
  if (c.scales == "1x128,1x128") g.scales = Scales::rows_by_rows;
  if (c.scales == "mx") g.block_scale = kMxScale;
  if (c.scales == "nv") g.block_scale = kNvScale;
  if (g.block_scale.block != 0)
    g.in = default_scaled_type(c.scales);
  else if (c.scales.empty() || c.scales == "none")
    g.in = DType::bf16;
}

/// Without pointers. Extents are those of the groups, 0 where these are empty.
GroupedGemmArguments arguments_of(GroupedGemmCommand const& c, std::vector<int> const& sizes,
                                  int compute_capability) {
  GroupedGemmArguments g{.grouping = grouping_of(c)};
  put_scales(g, c, compute_capability);
  bool const grouped = c.sizes.has_value();
  if (c.in) g.in = parse_operand_type("--dtype", *c.in, c.scales, grouped, compute_capability);
  if (c.in_b) g.in_b = parse_operand_type("--in-b", *c.in_b, c.scales, grouped, compute_capability);
  if (c.out) g.out = parse_dtype("--out-type", *c.out, {DType::f16, DType::bf16, DType::f32});
  auto const extent = [](std::int64_t said) { return said == 0 ? kDefaultExtent : said; };
  g.m = extent(c.m), g.n = extent(c.n), g.k = extent(c.k);
  g.groups = c.sizes ? static_cast<std::int64_t>(sizes.size()) : 1;
  std::int64_t all = 0, most = 0;
  for (int const size : sizes) all += size, most = std::max<std::int64_t>(most, size);
  auto const agrees = [&](char const* option, std::int64_t said, std::int64_t needed) {
    if (said != 0 && said != needed)
      throw argument_error(fmt::format(
          "{} is {} and the sizes of --groups add up to {}; leave it out, for it follows from them.",
          option, said, needed));
    return needed;
  };
  if (g.grouping == Grouping::contiguous) g.m = agrees("--m", c.m, all);
  if (g.grouping == Grouping::k) g.k = agrees("--k", c.k, all);
  if (g.grouping == Grouping::masked) {
    if (c.m == 0) g.m = most;
    if (most > g.m)
      throw argument_error(fmt::format(
          "--groups has a group of {} and --m, the rows of A for each group, is {}; it must be "
          "at least as many.",
          io::counted(most, "row"), g.m));
  }
  return g;
}

/// As they are launched: with a row or a column that is no group's where there is none, for no
/// tensor is empty, and with rows that TMA can address.
GroupedGemmArguments launched(GroupedGemmArguments g) {
  g.m = std::max<std::int64_t>(g.m, 1), g.k = std::max<std::int64_t>(g.k, 1);
  std::int64_t const unit = 128 / bits(g.in);  // columns in 16 bytes
  g.lda = g.ldb = (g.k + unit - 1) / unit * unit;
  return with_defaults(g);
}

bool by_k(GroupedGemmArguments const& g) { return g.grouping == Grouping::k; }
std::int64_t groups_of_b(GroupedGemmArguments const& g) {
  return by_k(g) || g.grouping == Grouping::none ? 1 : g.groups;
}
std::int64_t rows_of_d(GroupedGemmArguments const& g) {
  return rows_of_a(g) * (by_k(g) ? g.groups : 1);
}

/// The operands without data, each with its shape; without one where the problem has it not. With
/// block scales A and B are f32 until they are quantised.
void shape_operands(Problem& p, bool adds_c) {
  GroupedGemmArguments const& g = p.arguments;
  std::vector const of_d = {rows_of_d(g), g.n};
  p.a = {g.in, {rows_of_a(g), *g.lda}, {}};
  p.b = {*g.in_b, {groups_of_b(g) * g.n, *g.ldb}, {}};
  p.c = {*g.out, adds_c ? of_d : std::vector<std::int64_t>(), {}};
  p.d = {*g.out, of_d, {}};
  p.scale_a.type = p.scale_b.type = DType::f32;
  if (g.block_scale.block != 0) {
    p.a = {DType::f32, {rows_of_a(g), g.k}, {}};
    p.b = {DType::f32, {groups_of_b(g) * g.n, g.k}, {}};
  }
  if (g.scales == Scales::none) return;
  std::int64_t const blocks = scale_blocks(g);
  p.scale_a.shape = {blocks, *g.scale_a_stride};
  p.scale_b.shape = g.scales == Scales::rows_by_rows
                        ? std::vector{groups_of_b(g) * blocks, *g.scale_b_stride}
                        : std::vector{groups_of_b(g) * ((g.n + 127) / 128), blocks};
}

/// Refuses groups that begin where the kernel reads none.
void check_begins(GroupedGemmArguments const& g, GroupedGemmCommand const& c,
                  std::vector<int> const& sizes) {
  int const of_piece = kScalePieceScales * g.block_scale.block;
  bool const scaled = of_piece != 0;
  int const columns = scaled ? of_piece : 128 / bits(g.in);
  for (std::size_t i = 0; i + 1 < sizes.size(); ++i) {
    if (g.grouping == Grouping::k && sizes[i] % columns != 0)
      throw argument_error(
          fmt::format("--groups has a group of {} of {}; each but the last must be a multiple "
                      "of {}, for a group begins {}.",
                      io::counted(sizes[i], "column"), to_string(g.in), columns,
                      scaled ? "with a piece of scales" : "at a multiple of 16 bytes"));
    if (scaled && g.grouping == Grouping::contiguous && sizes[i] % kScalePieceRows != 0)
      throw argument_error(fmt::format(
          "--groups has a group of {} and --scales is {}; each but the last must be a multiple of "
          "{}, for a group begins with a piece of scales.",
          io::counted(sizes[i], "row"), c.scales, kScalePieceRows));
  }
}

std::vector<int> ends_of(std::vector<int> sizes, Grouping grouping) {
  if (grouping != Grouping::masked) std::partial_sum(sizes.begin(), sizes.end(), sizes.begin());
  return sizes;
}

/// Refuses a problem that takes too much memory, before anything is generated.
void require_memory_of(Problem const& p, Machine const& machine) {
  GroupedGemmArguments const& g = p.arguments;
  Footprint all;
  for (Operand const* const operand : {&p.a, &p.b, &p.c, &p.scale_a, &p.scale_b, &p.d})
    all.add(*operand);
  // A group's B in float64, with block scales as products and exponents.
  double const of_element = g.block_scale.block != 0 ? 24 : 8;
  all.checking = of_element * static_cast<double>(g.n) * static_cast<double>(g.k) +
                 bytes_of_checked_rows(rows_of_d(g), g.n);
  require_memory_of_run(
      fmt::format("gemm: --m {}, --n {}, --k {}{}", g.m, g.n, g.k,
                  p.sizes.empty() ? "" : ", --groups of " + io::counted(p.sizes.size(), "group")),
      all, machine);
}

struct Addresses {
  void const *a, *b, *c, *scale_a, *scale_b, *block_scale_a, *block_scale_b, *ends;
  void* d;
};
GroupedGemmArguments with_addresses(GroupedGemmArguments g, GroupedGemmCommand const& c,
                                    Addresses const& at) {
  g.a = at.a, g.b = at.b, g.d = at.d;
  if (c.adds_c) g.c = at.c;
  if (g.scales != Scales::none) {
    g.scale_a = static_cast<float const*>(at.scale_a);
    g.scale_b = static_cast<float const*>(at.scale_b);
  }
  if (g.block_scale.block != 0)
    g.block_scale_a = at.block_scale_a, g.block_scale_b = at.block_scale_b;
  if (g.grouping != Grouping::none) g.group_ends = static_cast<int const*>(at.ends);
  return g;
}

GroupedGemmConstraints constraints(GroupedGemmCommand const& c) {
  return {.configuration = c.configuration,
          .block_m = c.block_m,
          .block_n = c.block_n,
          .cluster_m = c.cluster_m,
          .cluster_n = c.cluster_n,
          .split_k = c.split_k};
}

/// For what touches no memory.
Addresses anywhere() {
  return {somewhere(1), somewhere(2), somewhere(3), somewhere(4), somewhere(5),
          somewhere(6), somewhere(7), somewhere(8), somewhere(9)};
}

/// Who said the fields that the library speaks of.
std::vector<Said> all_said(GroupedGemmCommand const& c, Machine const& machine) {
  auto const extent = [](std::int64_t said) { return said == 0 ? "" : std::to_string(said); };
  return {said("in", "--dtype", c.in),
          said("in_b", "--in-b", c.in_b),
          said("out", "--out-type", c.out),
          said("scales", "--scales", c.scales),
          said("block_scale", "--scales", c.scales),
          said("m", "--m", extent(c.m)),
          said("n", "--n", extent(c.n)),
          said("k", "--k", extent(c.k)),
          said(grouping_of(c) == Grouping::k ? "k" : "m", "--groups", c.sizes),
          said("groups", "--groups", c.sizes),
          said("b_group_stride", "--n", extent(c.n)),
          said("b_group_stride", "--k", extent(c.k)),
          said("machine", "--arch", machine.is_simulated() ? c.machine.arch : ""),
          said("grouping", "--grouping", c.grouping)};
}

/// Refuses a machine that computes no groups, or none with these scales, before types and sizes are
/// looked at: who mends these would be refused all the same.
void check_machine(GroupedGemmCommand const& c, Machine const& machine) {
  GroupedGemmArguments g{.m = 128, .n = 128, .k = 128};
  put_scales(g, c, machine.compute_capability());
  g = with_addresses(with_defaults(g), c, anywhere());
  named_as_said(all_said(c, machine), [&] { check(g, machine.compute_capability()); });
}

/// Checks what the command asks for and chooses a configuration for the device: with `as_asked` one
/// that the options of the choice leave. Throws argument_error.
void choose(GroupedGemmCommand const& c, std::vector<int> const& sizes,
            DeviceProperties const& device, bool as_asked) {
  GroupedGemmArguments const g =
      with_addresses(launched(arguments_of(c, sizes, device.compute_capability)), c, anywhere());
  check(g, device.compute_capability);
  choose_grouped_gemm(g, device, as_asked ? constraints(c) : GroupedGemmConstraints{});
}

bool is_computed(GroupedGemmCommand const& c, std::vector<int> const& sizes,
                 DeviceProperties const& device, bool as_asked = false) {
  try {
    choose(c, sizes, device, as_asked);
    return true;
  } catch (argument_error const&) {
    return false;
  }
}

constexpr char const* kOutputTypes[] = {"bf16", "f32", "f16"};

/// With another type of D than the default where none is said and the default is not computed: with
/// scales of 128 of both operands a build may have f32 alone. What the build has comes first.
GroupedGemmCommand with_output(GroupedGemmCommand const& c, std::vector<int> const& sizes,
                               DeviceProperties device) {
  if (c.out) return c;
  for (Kernels const kernels : {device.kernels, Kernels::all}) {
    device.kernels = kernels;
    if (is_computed(c, sizes, device)) return c;
    GroupedGemmCommand other = c;
    for (char const* const type : kOutputTypes) {
      other.out = type;
      if (is_computed(other, sizes, device)) return other;
    }
  }
  return c;
}

/// Refuses a problem that no kernel of the machine computes, whatever is asked for of the choice;
/// `given` is the command without what was added to it.
void require_computed(GroupedGemmCommand const& given, GroupedGemmCommand const& c,
                      std::vector<int> const& sizes, DeviceProperties const& device) {
  std::vector<Alternative> alternatives;
  auto const add = [&](char const* option, char const* value, auto&& change) {
    GroupedGemmCommand other = c;
    change(other);
    alternatives.push_back({option, value, [=, &sizes, &device](bool as_asked) {
                              return is_computed(other, sizes, device, as_asked);
                            }});
  };
  constexpr char const* kOperandTypes[] = {"bf16", "f16", "e4m3", "e5m2", "e2m1"};
  for (char const* const type : kOutputTypes)
    add("--out-type", type, [&](auto& other) { other.out = type; });
  for (char const* const type : kOperandTypes)
    add("--in-b", type, [&](auto& other) { other.in_b = type; });
  for (char const* const type : kOperandTypes)
    add("--dtype", type, [&](auto& other) { other.in = type; });
  for (char const* const scales : {"none", "1x128,128x128", "1x128,1x128", "mx", "nv"})
    add("--scales", scales, [&](auto& other) { other.scales = scales; });
  tool::require_computed({{"--dtype", c.in.value_or("")},
                          {"--in-b", c.in_b.value_or("")},
                          {"--out-type", given.out.value_or("")},
                          {"--scales", c.scales},
                          {"--grouping", c.grouping}},
                         c.asked, alternatives,
                         [&] { choose(c, sizes, device, /*as_asked=*/false); });
}

nlohmann::ordered_json describe(GroupedGemmArguments const& given, std::vector<int> const& sizes,
                                GroupedGemmCommand const& c) {
  GroupedGemmArguments const g = with_defaults(given);
  constexpr char const* scales[] = {"none", "1x128,128x128", "1x128,1x128"};
  constexpr char const* groupings[] = {"none", "contiguous", "masked", "k"};
  return {{"kernel", "grouped_gemm"},
          {"m", g.m},
          {"n", g.n},
          {"k", g.k},
          {"in", to_string(g.in)},
          {"in_b", to_string(*g.in_b)},
          {"out", to_string(*g.out)},
          {"scales", g.block_scale.block == 0 ? scales[static_cast<int>(*g.scales)] : c.scales},
          {"grouping", groupings[static_cast<int>(g.grouping)]},
          {"groups", sizes},
          {"c", c.adds_c},
          {"seed", c.machine.seed}};
}

nlohmann::ordered_json describe(GroupedGemmChoice const& choice) {
  GroupedGemmCost const& cost = choice.cost;
  nlohmann::ordered_json j;
  j["microseconds"] = {{"total", cost.total},
                       {"tensor", cost.tensor},
                       {"l2", cost.l2},
                       {"dram", cost.dram},
                       {"epilogue", cost.epilogue}};
  j["tiles"] = cost.tiles;
  j["waves"] = cost.waves;
  j["band"] = choice.band;
  j["clusters"] = choice.clusters;
  return j;
}

/// The rows of D that are some group's.
std::int64_t rows_of_groups(GroupedGemmArguments const& g, std::vector<int> const& sizes) {
  return g.grouping == Grouping::masked
             ? std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0})
             : rows_of_d(g);
}

/// Those rows, as reference::grouped_gemm numbers them, some of them where there are many.
std::vector<std::int64_t> checked_rows(GroupedGemmArguments const& g,
                                       std::vector<int> const& sizes) {
  auto rows = rows_to_check(rows_of_groups(g, sizes),
                            static_cast<double>(g.n) * static_cast<double>(g.k), g.n);
  if (g.grouping != Grouping::masked) return rows;
  std::size_t group = 0;
  std::int64_t first = 0;  // of the group, counted over the groups' rows
  for (std::int64_t& row : rows) {
    while (row - first >= sizes[group]) first += sizes[group++];
    row += static_cast<std::int64_t>(group) * g.m - first;
  }
  return rows;
}

}  // namespace

void run_grouped_gemm(GroupedGemmCommand const& given) {
  if (!given.sizes && !given.grouping.empty())
    throw argument_error(fmt::format(
        "--grouping is {} and there is no --groups; it must say the size of each group.",
        given.grouping));
  ProgressBar bar;
  Machine const machine = make_machine(given.machine, bar);
  check_lines(given.lines, given.json, given.explain, machine);
  if (given.explain) refuse_files_of_a_run({{"--output", given.output}});
  check_machine(given, machine);
  Problem p;
  if (given.sizes) p.sizes = read_sizes(*given.sizes);
  GroupedGemmCommand const c = with_output(given, p.sizes, machine.properties());
  p.said = arguments_of(c, p.sizes, machine.compute_capability());
  p.arguments = launched(p.said);
  GroupedGemmArguments const before = with_addresses(p.arguments, c, anywhere());
  named_as_said(all_said(c, machine), [&] { check(before, machine.compute_capability()); });
  check_begins(p.said, c, p.sizes);
  p.ends = ends_of(p.sizes, p.said.grouping);
  require_computed(given, c, p.sizes, machine.properties());
  if (c.explain) {
    GroupedGemmPlan const plan = chosen_as_asked(
        c.asked, [&] { return plan_grouped_gemm(before, machine.properties(), constraints(c)); });
    print_plan(plan, machine, c, describe(p.said, p.sizes, c),
               [](auto const& candidate) { return describe(candidate.choice); });
    return;
  }
  GroupedGemmArguments const& g = p.arguments;
  shape_operands(p, c.adds_c);
  require_memory_of(p, machine);
  generate_missing({&p.a, &p.b, &p.c, &p.scale_a, &p.scale_b}, c.machine.seed);
  if (g.block_scale.block != 0) {
    p.block_scale_a = quantise(p.a, g.in, g.block_scale, g.m, g.k, *g.lda);
    p.block_scale_b = quantise(p.b, *g.in_b, g.block_scale, g.n, g.k, *g.ldb);
  }
  auto const a = upload(machine, p.a, "A"), b = upload(machine, p.b, "B"),
             c_buffer = upload(machine, p.c, "C"),
             scale_a = upload(machine, p.scale_a, "scales of A"),
             scale_b = upload(machine, p.scale_b, "scales of B");
  Buffer<std::uint8_t> const block_scale_a(machine, p.block_scale_a, "scales of A"),
      block_scale_b(machine, p.block_scale_b, "scales of B");
  Buffer<int> const ends(machine, p.ends, "ends of groups");
  Buffer<std::byte> d_buffer(machine, rows_of_d(g) * g.n * (bits(*g.out) / 8), "D");
  d_buffer.fill(0);  // the rows of no group
  GroupedGemmArguments const arguments =
      with_addresses(g, c,
                     {a.data(), b.data(), c_buffer.data(), scale_a.data(), scale_b.data(),
                      block_scale_a.data(), block_scale_b.data(), ends.data(), d_buffer.data()});
  check(arguments, machine.compute_capability());
  GroupedGemmChoice const choice = chosen_as_asked(c.asked, [&] {
    return choose_grouped_gemm(arguments, machine.properties(), constraints(c));
  });
  double const milliseconds = checked_launches(machine, c.machine, bar, c.repeat, c.json,
                                               [&] { grouped_gemm(machine, arguments, choice); });
  p.d.data = d_buffer.download();
  // Without a row that was launched alone.
  p.d.shape[0] = rows_of_d(p.said);
  p.d.data.resize(static_cast<std::size_t>(p.d.shape[0] * g.n * (bits(*g.out) / 8)));
  if (!c.output.empty()) write_operand("--output", c.output, p.d);

  GroupedGemmArguments const host =
      with_addresses(g, c,
                     {p.a.data.data(), p.b.data.data(), p.c.data.data(), p.scale_a.data.data(),
                      p.scale_b.data.data(), p.block_scale_a.data(), p.block_scale_b.data(),
                      p.ends.data(), p.d.data.data()});
  auto const rows = checked_rows(p.said, p.sizes);
  auto const comparison =
      reference::compare(rows_as_doubles(p.d, g.n, rows), reference::grouped_gemm(host, rows),
                         reference::largest_finite(*g.out));
  Verdict verdict;
  verdict.problem = describe(p.said, p.sizes, c);
  GroupedGemmArguments as_said = host;
  as_said.m = p.said.m, as_said.k = p.said.k;
  verdict.headline = to_string(as_said);
  verdict.configuration_index = choice.configuration;
  verdict.configuration = configuration_name(choice.kernel, choice.configuration);
  verdict.milliseconds = milliseconds;
  double multiplied = static_cast<double>(by_k(g) || !c.sizes ? g.m : 0);
  if (!by_k(g))
    for (int const size : p.sizes) multiplied += size;
  verdict.multiply_adds = multiplied * static_cast<double>(g.n) * static_cast<double>(p.said.k);
  verdict.rows = rows_of_groups(p.said, p.sizes);
  verdict.rows_checked = static_cast<std::int64_t>(rows.size());
  verdict.parts = {{"D", comparison,
                    rows.empty()
                        ? ""
                        : fmt::format("row {}, column {}",
                                      rows[static_cast<std::size_t>(comparison.worst / g.n)],
                                      comparison.worst % g.n)}};
  verdict.output = c.output;
  write_timeline(c.machine, machine, verdict.configuration);
  print_verdict(verdict, machine, c.json, c.lines);
}

}  // namespace tegula::tool
