#include "tegula/device/launch.hpp"

#include <fmt/format.h>

#include <concepts>

#include "backend.hpp"
#include "families.hpp"

namespace tegula {
namespace {

/// Refuses a choice that was made for other arguments, as far as its configuration tells.
template <KernelFamily F, class Arguments>
void check_choice(F family, Arguments const& arguments, int number, DeviceProperties const& device) {
  auto const& config = configuration(family, number);
  if (device::FamilyTraits<F>::check(arguments, config, device) == nullptr) return;
  throw argument_error(
      fmt::format("gemm: the choice is {}, which does not compute {}; it must be chosen for such arguments.",
                  to_string(config), to_string(arguments)));
}

/// Launches what was chosen for checked arguments.
template <class Arguments, class Choice>
void run(Machine const& machine, Arguments const& arguments, Choice const& choice, Stream stream) {
  choice.kernel.visit([&]<class F>(F family) {
    if constexpr (device::Computes<F, Arguments>) {
      launch_kernel(machine, family, choice.configuration,
                    device::FamilyTraits<F>::lower(machine, arguments, choice), stream);
    }
  });
}

}  // namespace

void attention(Machine const& machine, AttentionArguments const& arguments, Stream stream) {
  check(arguments, machine.compute_capability());
  run(machine, arguments, choose_attention(arguments, machine.properties()), stream);
}

void gemm(Machine const& machine, GemmArguments const& arguments, Stream stream) {
  check(arguments, machine.compute_capability());
  run(machine, arguments, choose_gemm(arguments, machine.properties()), stream);
}

void gemm(Machine const& machine, GemmArguments const& arguments, GemmChoice const& choice, Stream stream) {
  choice.kernel.visit([&]<class F>(F family) {
    if constexpr (device::Computes<F, GemmArguments>) {
      check_choice(family, arguments, choice.configuration, machine.properties());
    } else {
      throw argument_error(fmt::format("gemm: the choice is of {}, which computes no GEMM.", family.name));
    }
  });
  run(machine, arguments, choice, stream);
}

void device::launch(Machine const& machine, FamilyId family, int configuration, void const* params,
                    Stream stream) {
  check_configuration(family, configuration);
  machine.backend().launch(family, configuration, params, stream);
}

}  // namespace tegula
