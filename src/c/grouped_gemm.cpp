// GEMMs of groups and of fp8 with scales of blocks, and what prepares their inputs.

#include "tegula/device/grouped_gemm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "element_types.hpp"
#include "guard.hpp"
#include "host_array.hpp"
#include "machine.hpp"
#include "structures.hpp"
#include "tegula/device/gemm_inputs.hpp"

namespace tegula::c {
namespace {

constexpr tegula_grouped_gemm_arguments kGroupedGemmDefaults = {
    .groups = 1,
    .lda = TEGULA_LEFT_OUT,
    .ldb = TEGULA_LEFT_OUT,
    .ldc = TEGULA_LEFT_OUT,
    .ldd = TEGULA_LEFT_OUT,
    .b_group_stride = TEGULA_LEFT_OUT,
    .c_group_stride = TEGULA_LEFT_OUT,
    .d_group_stride = TEGULA_LEFT_OUT,
    .scale_a_stride = TEGULA_LEFT_OUT,
    .scale_b_stride = TEGULA_LEFT_OUT,
    .expected_rows = TEGULA_LEFT_OUT,
};

constexpr tegula_gemm_inputs_arguments kInputDefaults = {
    .in = TEGULA_BF16,
    .out = TEGULA_E4M3,
    .ldx = TEGULA_LEFT_OUT,
    .ldq = TEGULA_LEFT_OUT,
    .scale_stride = TEGULA_LEFT_OUT,
};

/// An enumerator of the interface as the library's, which is numbered alike but for what is left
/// out.
template <class Enum>
Enum named(char const* operation, char const* name, std::int32_t value, std::int32_t last,
           char const* what) {
  if (value < 0 || value > last)
    throw argument_error(fmt::format("{}: {} is {}; it must be a {}, from 0 to {}.", operation,
                                     name, value, what, last));
  return static_cast<Enum>(value);
}

std::optional<Scales> scales_of(std::int32_t scales) {
  if (scales == TEGULA_SCALES_LEFT_OUT) return {};
  auto const given =
      named<tegula_scales>("grouped_gemm", "scales", scales, TEGULA_ROWS_BY_ROWS, "tegula_scales");
  return static_cast<Scales>(given - TEGULA_SCALES_NONE);
}

GroupedGemmArguments arguments_of(tegula_grouped_gemm_arguments const& g) {
  std::optional<DType> const in = dtype_of("grouped_gemm", "in", g.in);
  if (!in) throw argument_error("grouped_gemm: in is left out; it must be the type of A.");
  return {.in = *in,
          .in_b = dtype_of("grouped_gemm", "in_b", g.in_b),
          .out = dtype_of("grouped_gemm", "out", g.out),
          .scales = scales_of(g.scales),
          .grouping = named<Grouping>("grouped_gemm", "grouping", g.grouping, TEGULA_GROUPS_OF_K,
                                      "tegula_grouping"),
          .groups = g.groups,
          .m = g.m,
          .n = g.n,
          .k = g.k,
          .a = g.a,
          .b = g.b,
          .c = g.c,
          .d = g.d,
          .scale_a = g.scale_a,
          .scale_b = g.scale_b,
          .block_scale = block_scale_of("grouped_gemm", g.block_scale),
          .block_scale_a = g.block_scale_a,
          .block_scale_b = g.block_scale_b,
          .group_begins = g.group_begins,
          .group_ends = g.group_ends,
          .lda = unless_left_out(g.lda),
          .ldb = unless_left_out(g.ldb),
          .ldc = unless_left_out(g.ldc),
          .ldd = unless_left_out(g.ldd),
          .b_group_stride = unless_left_out(g.b_group_stride),
          .c_group_stride = unless_left_out(g.c_group_stride),
          .d_group_stride = unless_left_out(g.d_group_stride),
          .scale_a_stride = unless_left_out(g.scale_a_stride),
          .scale_b_stride = unless_left_out(g.scale_b_stride),
          .expected_rows = unless_left_out(g.expected_rows)};
}

GemmInputsArguments arguments_of(tegula_gemm_inputs_arguments const& g) {
  return {.step = named<InputStep>("gemm_inputs", "step", g.step, TEGULA_GROUP_BOUNDS,
                                   "tegula_input_step"),
          .in = dtype_of("gemm_inputs", "in", g.in).value_or(DType::bf16),
          .out = dtype_of("gemm_inputs", "out", g.out).value_or(DType::e4m3),
          .rows = g.rows,
          .columns = g.columns,
          .x = g.x,
          .q = g.q,
          .scales = g.scales,
          .power_of_two = g.power_of_two != 0,
          .groups = g.groups,
          .begins = g.begins,
          .ends = g.ends,
          .ldx = unless_left_out(g.ldx),
          .ldq = unless_left_out(g.ldq),
          .scale_stride = unless_left_out(g.scale_stride)};
}

/// Groups of rows of `columns` elements, in the caller's memory.
HostArray matrices(char const* name, void const* address, DType type, std::int64_t groups,
                   std::int64_t rows, std::int64_t columns, std::int64_t group_stride,
                   std::int64_t ld) {
  auto const bytes = [&](std::int64_t elements) { return elements * bits(type) / 8; };
  return {name, address, bytes(columns), {1, groups, rows}, {0, bytes(group_stride), bytes(ld)}};
}

/// The blocks of K that have scales: of groups of k as many as the groups, which the caller's
/// memory tells, have.
std::int64_t blocks_in_memory(GroupedGemmArguments const& g) {
  if (g.grouping != Grouping::k) return scale_blocks(g);
  std::int64_t blocks = 0;
  for (std::int64_t group = 0; group < g.groups; ++group) {
    int const before = group == 0 ? 0 : g.group_ends[group - 1];
    int const begin = g.group_begins != nullptr ? g.group_begins[group] : before;
    blocks += std::max(0, (g.group_ends[group] - begin + kScaleBlock - 1) / kScaleBlock);
  }
  return std::clamp<std::int64_t>(blocks, 1, scale_blocks(g));
}

/// Precondition: checked arguments, with nothing left out.
void simulate(tegula_machine& machine, GroupedGemmArguments const& host, tegula_report** report) {
  bool const by_k = host.grouping == Grouping::k, one = host.grouping == Grouping::none;
  std::int64_t const groups_b = one || by_k ? 1 : host.groups, groups_d = by_k ? host.groups : 1,
                     rows = rows_of_a(host), blocks = blocks_in_memory(host),
                     rows_d = by_k ? host.m : rows, blocks_n = (host.n + 127) / 128;
  HostArray const a = matrices("A", host.a, host.in, 1, rows, host.k, 0, *host.lda),
                  b = matrices("B", host.b, *host.in_b, groups_b, host.n, host.k,
                               *host.b_group_stride, *host.ldb),
                  c = matrices("C", host.c, *host.out, groups_d, rows_d, host.n,
                               *host.c_group_stride, *host.ldc),
                  d = matrices("D", host.d, *host.out, groups_d, rows_d, host.n,
                               *host.d_group_stride, *host.ldd),
                  scale_a = matrices("scale_a", host.scale_a, DType::f32, 1, blocks, rows, 0,
                                     *host.scale_a_stride),
                  scale_b =
                      host.scales == Scales::rows_by_rows
                          ? matrices("scale_b", host.scale_b, DType::f32, groups_b, blocks, host.n,
                                     blocks * *host.scale_b_stride, *host.scale_b_stride)
                          : table("scale_b", host.scale_b, groups_b * blocks_n * blocks);
  auto const pieces = [&](char const* name, void const* address, std::int64_t matrices,
                          std::int64_t rows_of_each) {
    int const block = host.block_scale.block;
    std::int64_t const bytes =
        block == 0 ? 0 : matrices * block_scale_bytes(rows_of_each, host.k, block);
    return HostArray{.name = name, .address = address, .row = bytes};
  };
  bool const masked = host.grouping == Grouping::masked;
  HostArray const block_scale_a =
                      pieces("scales of A", host.block_scale_a, masked ? host.groups : 1, host.m),
                  block_scale_b = pieces("scales of B", host.block_scale_b, groups_b, host.n);
  require_memory("grouped_gemm", {a, b, c, d, scale_a, scale_b, block_scale_a, block_scale_b});
  GroupedGemmArguments g = host;
  OperandsOnMachine operands(machine.machine);
  operands.input(g.a, a), operands.input(g.b, b);
  operands.input(g.scale_a, scale_a), operands.input(g.scale_b, scale_b);
  operands.input(g.block_scale_a, block_scale_a), operands.input(g.block_scale_b, block_scale_b);
  operands.input(g.group_begins, table("group_begins", host.group_begins, host.groups));
  operands.input(g.group_ends, table("group_ends", host.group_ends, host.groups));
  bool const in_place = host.c == host.d;
  if (!in_place) operands.input(g.c, c);
  operands.output(g.d, d, in_place || !(one || by_k));
  if (in_place) g.c = g.d;
  launch_and_report(
      machine, report, [&] { grouped_gemm(machine.machine, g); }, [&] { operands.download(); });
}

/// Precondition: checked arguments, with nothing left out.
void simulate(tegula_machine& machine, GemmInputsArguments const& host, tegula_report** report) {
  bool const bounds = host.step == InputStep::group_bounds,
             transforms = host.step == InputStep::transform_scales,
             of_blocks = host.step == InputStep::quantize_blocks;
  auto const blocks = [](std::int64_t extent) { return (extent + kScaleBlock - 1) / kScaleBlock; };
  std::int64_t const scales_of_row = transforms ? host.columns : blocks(host.columns);
  HostArray const x = bounds ? table("groups", host.x, host.rows)
                             : matrices("x", host.x, transforms ? DType::f32 : host.in, 1,
                                        host.rows, host.columns, 0, *host.ldx),
                  q = matrices("q", bounds || transforms ? nullptr : host.q, host.out, 1, host.rows,
                               host.columns, 0, *host.ldq),
                  scales = matrices("scales", bounds ? nullptr : host.scales, DType::f32, 1,
                                    of_blocks ? blocks(host.rows) : scales_of_row,
                                    of_blocks ? scales_of_row : host.rows, 0, *host.scale_stride);
  require_memory("gemm_inputs", {x, q, scales});
  GemmInputsArguments g = host;
  OperandsOnMachine operands(machine.machine);
  operands.input(g.x, x);
  operands.output(g.q, q), operands.output(g.scales, scales);
  operands.output(g.begins, table("begins", bounds ? host.begins : nullptr, host.groups));
  operands.output(g.ends, table("ends", bounds ? host.ends : nullptr, host.groups));
  launch_and_report(
      machine, report, [&] { prepare_gemm_inputs(machine.machine, g); },
      [&] { operands.download(); });
}

void launch(Machine const& machine, GroupedGemmArguments const& g, Stream stream) {
  grouped_gemm(machine, g, stream);
}
void launch(Machine const& machine, GemmInputsArguments const& g, Stream stream) {
  prepare_gemm_inputs(machine, g, stream);
}

/// Either of the two, where its machine computes it.
template <class Given>
tegula_status compute(char const* function, tegula_machine* machine, Given const* arguments,
                      Given const& defaults, void* stream, tegula_report** report) {
  return guarded([&] {
    not_null(function, "machine", machine);
    not_null(function, "arguments", arguments);
    Use const use(*machine);
    auto const g = arguments_of(read_structure(function, *arguments, defaults));
    if (machine->machine.is_simulated()) {
      check(g, machine->machine.compute_capability());
      simulate(*machine, with_defaults(g), report);
    } else {
      launch(machine->machine, g, Stream{stream});
      if (report != nullptr) *report = nullptr;
    }
  });
}

}  // namespace
}  // namespace tegula::c

using namespace tegula;
using namespace tegula::c;

void tegula_grouped_gemm_arguments_init(tegula_grouped_gemm_arguments* arguments,
                                        size_t struct_size) {
  initialise(arguments, struct_size, kGroupedGemmDefaults);
}

tegula_status tegula_grouped_gemm(tegula_machine* machine,
                                  tegula_grouped_gemm_arguments const* arguments, void* stream,
                                  tegula_report** report) {
  return compute("tegula_grouped_gemm", machine, arguments, kGroupedGemmDefaults, stream, report);
}

tegula_status tegula_grouped_gemm_choice(tegula_machine* machine,
                                         tegula_grouped_gemm_arguments const* arguments,
                                         char** text) {
  return guarded([&] {
    not_null("tegula_grouped_gemm_choice", "machine", machine);
    not_null("tegula_grouped_gemm_choice", "arguments", arguments);
    not_null("tegula_grouped_gemm_choice", "text", text);
    Use const use(*machine);
    GroupedGemmArguments const g = arguments_of(
        read_structure("tegula_grouped_gemm_choice", *arguments, kGroupedGemmDefaults));
    check(g, machine->machine.compute_capability());
    GroupedGemmChoice const choice = choose_grouped_gemm(g, machine->machine.properties());
    *text = as_c_text(configuration_name(choice.kernel, choice.configuration));
  });
}

void tegula_gemm_inputs_arguments_init(tegula_gemm_inputs_arguments* arguments,
                                       size_t struct_size) {
  initialise(arguments, struct_size, kInputDefaults);
}

tegula_status tegula_gemm_inputs(tegula_machine* machine,
                                 tegula_gemm_inputs_arguments const* arguments, void* stream,
                                 tegula_report** report) {
  return compute("tegula_gemm_inputs", machine, arguments, kInputDefaults, stream, report);
}
