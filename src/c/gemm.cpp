#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>

#include "element_types.hpp"
#include "guard.hpp"
#include "host_array.hpp"
#include "machine.hpp"
#include "prepared.hpp"
#include "structures.hpp"
#include "tegula/device/gemm_plan.hpp"
#include "tegula/kernel/block_scale.hpp"

namespace tegula::c {
namespace {

constexpr tegula_gemm_arguments kGemmDefaults = {
    .batch = 1,
    .lda = TEGULA_LEFT_OUT,
    .ldb = TEGULA_LEFT_OUT,
    .ldc = TEGULA_LEFT_OUT,
    .ldd = TEGULA_LEFT_OUT,
    .a_batch_stride = TEGULA_LEFT_OUT,
    .b_batch_stride = TEGULA_LEFT_OUT,
    .c_batch_stride = TEGULA_LEFT_OUT,
    .d_batch_stride = TEGULA_LEFT_OUT,
    .alpha = 1,
    .beta = 0,
};

Major major_of(char const* name, std::int32_t major) {
  if (major == TEGULA_MAJOR_K) return Major::k;
  if (major == TEGULA_MAJOR_MN) return Major::mn;
  throw argument_error(fmt::format(
      "gemm: {} is {}; it must be TEGULA_MAJOR_K (0) or TEGULA_MAJOR_MN (1).", name, major));
}

Activation activation_of(std::int32_t activation) {
  if (activation >= TEGULA_ACTIVATION_NONE && activation <= TEGULA_SILU)
    return static_cast<Activation>(activation);
  throw argument_error(fmt::format(
      "gemm: activation is {}; it must be TEGULA_ACTIVATION_NONE (0), TEGULA_RELU (1), TEGULA_GELU (2) "
      "or TEGULA_SILU (3).",
      activation));
}

GemmArguments arguments_of(tegula_gemm_arguments const& g) {
  std::optional<DType> const in = dtype_of("gemm", "in", g.in);
  if (!in) throw argument_error("gemm: in is left out; it must be the type of A's elements.");
  return {.in = *in,
          .in_b = dtype_of("gemm", "in_b", g.in_b),
          .out = dtype_of("gemm", "out", g.out),
          .a_major = major_of("a_major", g.a_major),
          .b_major = major_of("b_major", g.b_major),
          .m = g.m,
          .n = g.n,
          .k = g.k,
          .batch = g.batch,
          .a = g.a,
          .b = g.b,
          .c = g.c,
          .bias = g.bias,
          .d = g.d,
          .lda = unless_left_out(g.lda),
          .ldb = unless_left_out(g.ldb),
          .ldc = unless_left_out(g.ldc),
          .ldd = unless_left_out(g.ldd),
          .a_batch_stride = unless_left_out(g.a_batch_stride),
          .b_batch_stride = unless_left_out(g.b_batch_stride),
          .c_batch_stride = unless_left_out(g.c_batch_stride),
          .d_batch_stride = unless_left_out(g.d_batch_stride),
          .scale_a = g.scale_a,
          .scale_b = g.scale_b,
          .block_scale = block_scale_of("gemm", g.block_scale),
          .block_scale_a = g.block_scale_a,
          .block_scale_b = g.block_scale_b,
          .alpha = g.alpha,
          .beta = g.beta,
          .activation = activation_of(g.activation),
          .workspace = g.workspace,
          .workspace_bytes = g.workspace_bytes};
}

/// `rows` rows of `columns` elements for each matrix of the batch.
HostArray matrices(char const* name, void const* address, GemmArguments const& g, std::int64_t rows,
                   std::int64_t columns, std::int64_t ld, std::int64_t batch_stride, DType type) {
  auto const bytes = [&](std::int64_t elements) { return elements * bits(type) / 8; };
  return {name, address, bytes(columns), {1, g.batch, rows}, {0, bytes(batch_stride), bytes(ld)}};
}

/// The operands in a simulated machine's memory.
struct Operands {
  OnMachine a, b, d;
  std::optional<OnMachine> c;  ///< where it is not d
  OnMachine bias, scale_a, scale_b, block_scale_a, block_scale_b, workspace;
};

/// Precondition: checked arguments, with nothing left out.
Operands operands(Machine const& machine, GemmArguments const& g) {
  bool const a_k = g.a_major == Major::k, b_k = g.b_major == Major::k;
  bool const reads_c = g.beta != 0;
  auto const vector = [](char const* name, void const* address, std::int64_t bytes) {
    return HostArray{.name = name, .address = address, .row = bytes};
  };
  auto const scales = [&](std::int64_t rows, std::int64_t batch_stride) {
    if (g.block_scale.block == 0) return std::int64_t{0};
    return block_scale_bytes(rows, g.k, g.block_scale.block) * (batch_stride == 0 ? 1 : g.batch);
  };
  HostArray const a = matrices("A", g.a, g, a_k ? g.m : g.k, a_k ? g.k : g.m, *g.lda,
                               *g.a_batch_stride, g.in),
                  b = matrices("B", g.b, g, b_k ? g.n : g.k, b_k ? g.k : g.n, *g.ldb,
                               *g.b_batch_stride, *g.in_b),
                  c = matrices("C", reads_c ? g.c : nullptr, g, g.m, g.n, *g.ldc, *g.c_batch_stride,
                               *g.out),
                  d = matrices("D", g.d, g, g.m, g.n, *g.ldd, *g.d_batch_stride, *g.out),
                  bias = vector("bias", g.bias, g.n * (bits(*g.out) / 8)),
                  scale_a = vector("scale_a", g.scale_a, sizeof(float)),
                  scale_b = vector("scale_b", g.scale_b, sizeof(float)),
                  block_scale_a =
                      vector("scales of A", g.block_scale_a, scales(g.m, *g.a_batch_stride)),
                  block_scale_b =
                      vector("scales of B", g.block_scale_b, scales(g.n, *g.b_batch_stride)),
                  workspace = vector("workspace", g.workspace, g.workspace_bytes);
  require_memory("gemm", {a, b, c, d, bias, block_scale_a, block_scale_b, workspace});
  return {.a = {machine, a},
          .b = {machine, b},
          .d = {machine, d},
          .c = c.address == g.d ? std::optional<OnMachine>() : OnMachine(machine, c),
          .bias = {machine, bias},
          .scale_a = {machine, scale_a},
          .scale_b = {machine, scale_b},
          .block_scale_a = {machine, block_scale_a},
          .block_scale_b = {machine, block_scale_b},
          .workspace = {machine, workspace}};
}

void simulate(tegula_machine& machine, GemmArguments const& host, tegula_report** report) {
  Operands held = operands(machine.machine, host);
  for (OnMachine* const input : {&held.a, &held.b, &held.bias, &held.scale_a, &held.scale_b,
                                 &held.block_scale_a, &held.block_scale_b})
    input->upload();
  (held.c ? *held.c : held.d).upload();
  GemmArguments g = host;
  g.a = held.a.data();
  g.b = held.b.data();
  g.c = (held.c ? *held.c : held.d).data();
  g.d = held.d.data();
  g.bias = held.bias.data();
  g.scale_a = static_cast<float const*>(held.scale_a.data());
  g.scale_b = static_cast<float const*>(held.scale_b.data());
  g.block_scale_a = held.block_scale_a.data();
  g.block_scale_b = held.block_scale_b.data();
  g.workspace = held.workspace.data();
  launch_and_report(
      machine, report, [&] { gemm(machine.machine, g); }, [&] { held.d.download(host.d); });
}

}  // namespace
}  // namespace tegula::c

using namespace tegula;
using namespace tegula::c;

void tegula_gemm_arguments_init(tegula_gemm_arguments* arguments, size_t struct_size) {
  initialise(arguments, struct_size, kGemmDefaults);
}

tegula_status tegula_gemm(tegula_machine* machine, tegula_gemm_arguments const* arguments,
                          void* stream, tegula_report** report) {
  return guarded([&] {
    not_null("tegula_gemm", "machine", machine);
    not_null("tegula_gemm", "arguments", arguments);
    Use const use(*machine);
    tegula_gemm_arguments const given = read_structure("tegula_gemm", *arguments, kGemmDefaults);
    if (machine->machine.is_simulated()) {
      GemmArguments const g = arguments_of(given);
      check(g, machine->machine.compute_capability());
      simulate(*machine, with_defaults(g), report);
    } else {
      gemm(machine->machine, arguments_of(given), Stream{stream});
      if (report != nullptr) *report = nullptr;
    }
  });
}

tegula_status tegula_gemm_choice(tegula_machine* machine, tegula_gemm_arguments const* arguments,
                                 char** text) {
  return guarded([&] {
    not_null("tegula_gemm_choice", "machine", machine);
    not_null("tegula_gemm_choice", "arguments", arguments);
    not_null("tegula_gemm_choice", "text", text);
    Use const use(*machine);
    GemmArguments const g =
        arguments_of(read_structure("tegula_gemm_choice", *arguments, kGemmDefaults));
    check(g, machine->machine.compute_capability());
    GemmChoice const choice = choose_gemm(g, machine->machine.properties());
    *text = as_c_text(configuration_name(choice.kernel, choice.configuration));
  });
}

tegula_status tegula_gemm_workspace(tegula_machine* machine, tegula_gemm_arguments const* arguments,
                                    int64_t* bytes) {
  return guarded([&] {
    not_null("tegula_gemm_workspace", "machine", machine);
    not_null("tegula_gemm_workspace", "arguments", arguments);
    not_null("tegula_gemm_workspace", "bytes", bytes);
    Use const use(*machine);
    *bytes = gemm_workspace_bytes(
        machine->machine,
        arguments_of(read_structure("tegula_gemm_workspace", *arguments, kGemmDefaults)));
  });
}

tegula_status tegula_gemm_prepare(tegula_machine* machine, tegula_gemm_arguments const* arguments,
                                  tegula_launch** launch) {
  return guarded([&] {
    not_null("tegula_gemm_prepare", "machine", machine);
    not_null("tegula_gemm_prepare", "arguments", arguments);
    not_null("tegula_gemm_prepare", "launch", launch);
    Use const use(*machine);
    *launch =
        prepared("tegula_gemm_prepare", machine->machine,
                 arguments_of(read_structure("tegula_gemm_prepare", *arguments, kGemmDefaults)));
  });
}
