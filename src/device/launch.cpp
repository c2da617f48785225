#include "tegula/device/launch.hpp"

#include <fmt/format.h>

#include "backend.hpp"
#include "table_entry.hpp"
#include "tegula/device/selection.hpp"

namespace tegula {

namespace {

using device::entry;

/// Refuses a choice that was made for other arguments, as far as a configuration tells: types, majors and
/// activation.
void check(GemmArguments const& arguments, GemmChoice const& choice) {
  GemmArguments const g = with_defaults(arguments);
  auto const refuse = [&](std::string const& name) {
    throw argument_error(fmt::format(
        "gemm: the choice is {}, which does not compute {}; it must be chosen for such arguments.", name,
        to_string(g)));
  };
  if (choice.kernel == GemmKernel::sm90) {
    GemmSm90Config const& c = entry("gemm_sm90", gemm_sm90_configurations(), choice.configuration);
    if (c.a != g.in || c.b != *g.in_b || c.out != *g.out || c.a_major != g.a_major ||
        c.b_major != g.b_major || c.activation != g.activation)
      refuse(to_string(c));
  } else {
    GemmConfig const& c = entry("gemm_sm80", gemm_configurations(), choice.configuration);
    if (c.in != g.in || c.in != *g.in_b || c.out != *g.out || c.a_major != g.a_major ||
        c.b_major != g.b_major || c.vector_bytes > vector_bytes(g))
      refuse(to_string(c));
  }
}

}  // namespace

void attention(Machine const& machine, AttentionArguments const& arguments, Stream stream) {
  check(arguments, machine.compute_capability());
  launch_attention(machine, select(arguments, attention_configurations(), machine.properties()),
                   lower(arguments), stream);
}

void gemm(Machine const& machine, GemmArguments const& arguments, Stream stream) {
  check(arguments, machine.compute_capability());
  gemm(machine, arguments, choose_gemm(arguments, machine.properties()), stream);
}

void gemm(Machine const& machine, GemmArguments const& arguments, GemmChoice const& choice, Stream stream) {
  check(arguments, choice);
  if (choice.kernel == GemmKernel::sm90) {
    launch_gemm(machine, choice.configuration, lower(machine, arguments, choice), stream);
  } else {
    launch_gemm(machine, choice.configuration, lower(arguments), stream);
  }
}

void launch_attention(Machine const& machine, int configuration, AttentionParams const& params,
                      Stream stream) {
  entry("attention_sm80", attention_configurations(), configuration);
  machine.backend().launch(device::Family::attention_sm80, configuration, &params, stream);
}

void launch_gemm(Machine const& machine, int configuration, GemmParams const& params, Stream stream) {
  entry("gemm_sm80", gemm_configurations(), configuration);
  machine.backend().launch(device::Family::gemm_sm80, configuration, &params, stream);
}

void launch_gemm(Machine const& machine, int configuration, GemmSm90Params const& params, Stream stream) {
  entry("gemm_sm90", gemm_sm90_configurations(), configuration);
  machine.backend().launch(device::Family::gemm_sm90, configuration, &params, stream);
}

}  // namespace tegula
