#pragma once

/// What the device layer is told of a family of kernels: a specialisation of FamilyTraits in
/// families/NAME.hpp. All else here iterates over the families (kernel/configurations.hpp).

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tegula/device/arguments.hpp"
#include "tegula/device/family.hpp"
#include "tegula/device/gemm_plan.hpp"
#include "tegula/device/machine.hpp"
#include "tegula/device/properties.hpp"
#include "tegula/device/selection.hpp"
#include "tegula/sim/global_tensor.hpp"

namespace tegula::device {

/// What a refusal says more where the device is given a part of the configurations only: a sentence
/// after a space, or nothing.
std::string_view missing_configurations_note(DeviceProperties const& device);

/// Throws argument_error: no configuration computes the problem. `elsewhere`: one that the device
/// is not given does, and the sentence says how to have it.
[[noreturn]] void refuse_uncomputed(std::string_view operation, std::string_view problem,
                                    DeviceProperties const& device, bool elsewhere);

/// Throws argument_error: the configurations in `computing`, by family and number, compute the
/// problem, and none of them is what was asked for. Precondition: there is one.
[[noreturn]] void refuse_unwanted(std::string_view operation, std::string_view problem,
                                  std::vector<std::pair<FamilyId, int>> const& computing);

/// The device as one that is given any kernel.
inline DeviceProperties with_all_kernels(DeviceProperties device) {
  device.kernels = Kernels::all;
  return device;
}

/// The device as one that is given built kernels, where one of them will do, or else any. `can(d)`
/// says whether something can be chosen for the device d.
template <class Can> DeviceProperties with_kernels(DeviceProperties device, Can&& can) {
  if (device.kernels != Kernels::built_preferred) return device;
  device.kernels = Kernels::built;
  if (!can(device)) device.kernels = Kernels::all;
  return device;
}

/// Every family's has
///
///     Arguments, Choice                  what a caller asks for, and by which configuration it is
///                                        computed
///     obstacle(arguments, device)        what keeps the family from checked arguments, whatever
///     the
///                                        configuration: a clause, or nothing
///     check(arguments, config, device)   what keeps a configuration from them: a clause, or null
///     lower(machine, arguments, choice)  what the kernel is launched with
///     describe(config, params)           the tensors of a launch, for the checker
///     name(config)                       the configuration in a line
///     reference(host arguments, rows)    the exact result
///
/// and may have
///
///     on_stream(params, workspace)       adds to the params what Backend::stream_workspace gives
template <class Family> struct FamilyTraits;

template <class Family, class Traits = FamilyTraits<Family>>
concept DescribedFamily = KernelFamily<Family> &&
    requires(Machine const& machine, typename Traits::Arguments const& arguments,
             typename Traits::Choice const& choice, typename Family::Config const& config,
             typename Family::Params const& params, DeviceProperties const& device,
             std::vector<std::int64_t> const& rows) {
  { Traits::obstacle(arguments, device) } -> std::same_as<std::string>;
  { Traits::check(arguments, config, device) } -> std::same_as<char const*>;
  { Traits::lower(machine, arguments, choice) } -> std::same_as<typename Family::Params>;
  { Traits::describe(config, params) } -> std::same_as<std::vector<sim::GlobalTensor>>;
  { Traits::name(config) } -> std::same_as<std::string>;
  Traits::reference(arguments, rows);
};

/// A family that computes what these arguments ask for.
template <class Family, class Arguments>
concept Computes = std::same_as<typename FamilyTraits<Family>::Arguments, Arguments>;

/// The families of GEMMs have besides
///
///     walks_tiles                       whether its clusters walk GemmChoice::tiling
///     unwanted(wanted, arguments, config, number)
///                                       what tells a configuration from what is asked for: a
///                                       clause, or null
///     predict(arguments, config, device, wanted, model)
///                                       the choice of it, with its cost
///     remark(arguments, choice)         what the plan's reason says more: a clause after "; ", or
///                                       nothing
///
/// and may have
///
///     workspace_bytes(arguments, choice)
///                                       of GemmArguments::workspace, that a choice needs
template <class Family, class Traits = FamilyTraits<Family>>
concept GemmFamily = Computes<Family, GemmArguments> &&
    requires(GemmArguments const& arguments, typename Family::Config const& config,
             GemmChoice const& choice, DeviceProperties const& device,
             GemmConstraints const& wanted, GemmCostModel const& model) {
  { Traits::walks_tiles } -> std::convertible_to<bool>;
  { Traits::unwanted(wanted, arguments, config, 0) } -> std::same_as<char const*>;
  { Traits::predict(arguments, config, device, wanted, model) } -> std::same_as<GemmChoice>;
  { Traits::remark(arguments, choice) } -> std::same_as<std::string>;
};

}  // namespace tegula::device
