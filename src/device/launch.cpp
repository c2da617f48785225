#include "tegula/device/launch.hpp"

#include <fmt/format.h>

#include <concepts>
#include <functional>

#include "backend.hpp"
#include "families.hpp"
#include "tegula/device/append_keys.hpp"
#include "tegula/device/prepared_launch.hpp"

namespace tegula {
namespace {

/// Refuses a choice that was made for other arguments, as far as its configuration tells.
template <class Arguments>
void check_choice(char const* operation, Arguments const& arguments, FamilyId family, int number,
                  DeviceProperties const& device) {
  family.visit([&]<class F>(F f) {
    if constexpr (device::Computes<F, Arguments>) {
      auto const& config = configuration(f, number);
      char const* const other = device::FamilyTraits<F>::check(arguments, config, device);
      if (other == nullptr && device::FamilyTraits<F>::obstacle(arguments, device).empty()) return;
      throw argument_error(fmt::format(
          "{}: the choice is {}, which {}does not compute {}; it must be chosen for such arguments.",
          operation, to_string(config),
          other == nullptr ? "" : fmt::format("is for {} and ", other), to_string(arguments)));
    } else {
      throw argument_error(fmt::format("{}: the choice is of {}, which computes something else.",
                                       operation, f.name));
    }
  });
}

/// choose_gemm's choice, which is made once for problems that are alike.
GemmChoice chosen(Machine const& machine, GemmArguments const& arguments) {
  DeviceProperties const device = machine.properties();
  return machine.backend().gemm_choices.of(device::key_of(arguments, device),
                                           [&] { return choose_gemm(arguments, device); });
}

/// Queues a kernel with what was made by FamilyTraits::lower.
template <KernelFamily F>
void launch_lowered(Machine const& machine, F family, int configuration,
                    typename F::Params const& lowered, Stream stream) {
  using Traits = device::FamilyTraits<F>;
  auto params = lowered;
  if constexpr (requires { Traits::on_stream(params, nullptr); })
    Traits::on_stream(params, machine.backend().stream_workspace(stream));
  launch_kernel(machine, family, configuration, params, stream);
}

/// What comes before the kernel that is chosen: new keys are appended.
void run_before(Machine const& machine, AttentionArguments const& a, Stream stream) {
  if (a.k_new == nullptr) return;
  using Traits = device::FamilyTraits<AppendKeysFamily>;
  AppendKeysChoice choice;
  while (Traits::check({a}, AppendKeysFamily::table[choice.configuration], machine.properties()))
    ++choice.configuration;
  launch_lowered(machine, append_keys, choice.configuration, Traits::lower(machine, {a}, choice),
                 stream);
}
void run_before(Machine const&, GemmArguments const&, Stream) {}

/// Launches what was chosen for checked arguments.
template <class Arguments, class Choice>
void run(Machine const& machine, Arguments const& arguments, Choice const& choice, Stream stream) {
  run_before(machine, arguments, stream);
  choice.kernel.visit([&]<class F>(F family) {
    if constexpr (device::Computes<F, Arguments>)
      launch_lowered(machine, family, choice.configuration,
                     device::FamilyTraits<F>::lower(machine, arguments, choice), stream);
  });
}

/// The same, to be done later.
template <class Arguments, class Choice>
std::function<void(Stream)> prepare(Machine const& machine, Arguments const& arguments,
                                    Choice const& choice) {
  std::function<void(Stream)> launch;
  choice.kernel.visit([&]<class F>(F family) {
    if constexpr (device::Computes<F, Arguments>)
      launch = [machine, family, configuration = choice.configuration, arguments,
                params =
                    device::FamilyTraits<F>::lower(machine, arguments, choice)](Stream stream) {
        run_before(machine, arguments, stream);
        launch_lowered(machine, family, configuration, params, stream);
      };
  });
  return launch;
}

}  // namespace

std::int64_t gemm_workspace_bytes(Machine const& machine, GemmArguments const& arguments) {
  check(arguments, machine.compute_capability());
  GemmArguments g = arguments;
  g.workspace_bytes = 0;  // whatever it is
  DeviceProperties const device = machine.properties();
  return machine.backend().gemm_workspaces.of(device::key_of(g, device),
                                              [&] { return gemm_workspace_bytes(g, device); });
}

void attention(Machine const& machine, AttentionArguments const& arguments, Stream stream) {
  check(arguments, machine.compute_capability());
  run(machine, arguments, choose_attention(arguments, machine.properties()), stream);
}

void gemm(Machine const& machine, GemmArguments const& arguments, Stream stream) {
  check(arguments, machine.compute_capability());
  run(machine, arguments, chosen(machine, arguments), stream);
}

void attention(Machine const& machine, AttentionArguments const& arguments,
               AttentionChoice const& choice, Stream stream) {
  check_choice("attention", arguments, choice.kernel, choice.configuration, machine.properties());
  run(machine, arguments, choice, stream);
}

void gemm(Machine const& machine, GemmArguments const& arguments, GemmChoice const& choice,
          Stream stream) {
  check_choice("gemm", arguments, choice.kernel, choice.configuration, machine.properties());
  run(machine, arguments, choice, stream);
}

PreparedLaunch::PreparedLaunch(Machine const& machine, AttentionArguments const& arguments) {
  check(arguments, machine.compute_capability());
  launch_ = prepare(machine, arguments, choose_attention(arguments, machine.properties()));
}

PreparedLaunch::PreparedLaunch(Machine const& machine, GemmArguments const& arguments) {
  check(arguments, machine.compute_capability());
  launch_ = prepare(machine, arguments, chosen(machine, arguments));
}

void device::launch(Machine const& machine, FamilyId family, int configuration, void const* params,
                    Stream stream) {
  check_configuration(family, configuration);
  if (!is_built(family, configuration) && machine.properties().kernels == Kernels::built)
    throw argument_error(fmt::format("the configuration of {} is {}, which {} is not given.{}",
                                     to_string(family), configuration_name(family, configuration),
                                     machine.name(),
                                     missing_configurations_note(machine.properties())));
  machine.backend().launch(family, configuration, params, stream);
}

}  // namespace tegula
