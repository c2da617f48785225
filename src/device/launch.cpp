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
  launch_gemm(machine, select(arguments, gemm_configurations(), machine.properties()), lower(arguments),
              stream);
}

void launch_attention(Machine const& machine, int configuration, AttentionParams const& params,
                      Stream stream) {
  machine.backend().launch_attention(configuration, params, stream);
}

void launch_gemm(Machine const& machine, int configuration, GemmParams const& params, Stream stream) {
  machine.backend().launch_gemm(configuration, params, stream);
}

}  // namespace tegula
