#include "tegula/device/launch.hpp"

#include "backend.hpp"
#include "tegula/device/selection.hpp"

namespace tegula {

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
  if (choice.kernel == GemmKernel::sm90) {
    launch_gemm(machine, choice.configuration, lower(machine, arguments, choice), stream);
  } else {
    launch_gemm(machine, choice.configuration, lower(arguments), stream);
  }
}

void launch_attention(Machine const& machine, int configuration, AttentionParams const& params,
                      Stream stream) {
  machine.backend().launch(device::Family::attention_sm80, configuration, &params, stream);
}

void launch_gemm(Machine const& machine, int configuration, GemmParams const& params, Stream stream) {
  machine.backend().launch(device::Family::gemm_sm80, configuration, &params, stream);
}

void launch_gemm(Machine const& machine, int configuration, GemmSm90Params const& params, Stream stream) {
  machine.backend().launch(device::Family::gemm_sm90, configuration, &params, stream);
}

}  // namespace tegula
