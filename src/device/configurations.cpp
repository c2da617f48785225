// The configurations of every family by number, those that are built first.

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "built.hpp"
#include "families.hpp"

namespace tegula {

device::ConfigurationTable device::configurations(FamilyId family, Kernels kernels) {
  ConfigurationTable table{};
  family.visit([&]<class F>(F) {
    table = {kAllConfigurations<F>.data(),
             kernels == Kernels::all ? kAllIndices<F>.size() : kBuiltIndices<F>.size()};
  });
  return table;
}

std::string device::name_of(FamilyId family, void const* config) {
  std::string name;
  family.visit([&]<class F>(F) {
    name = FamilyTraits<F>::name(*static_cast<typename F::Config const*>(config));
  });
  return name;
}

void device::check_configuration(FamilyId family, int number) {
  std::size_t const count = configurations(family, Kernels::all).count;
  if (number < 0 || static_cast<std::size_t>(number) >= count)
    throw argument_error(fmt::format("the configuration of {} is {}; it must be from 0 to {}.",
                                     to_string(family), number, count - 1));
}

bool device::is_built(FamilyId family, int number) {
  return static_cast<std::size_t>(number) < configurations(family, Kernels::built).count;
}

std::string_view device::missing_configurations_note(DeviceProperties const& device) {
  if (device.kernels == Kernels::all) return "";
  bool whole = true;  // of each family at least some configurations
  Families::for_each([&]<class F>(F) { whole = whole && kEndUnit<F> > 0; });
  if (!TEGULA_ALL_CONFIGURATIONS)
    return whole ? " This build has representative configurations only; configure with "
                   "-DTEGULA_CONFIGURATIONS=all to have all of them."
                 : " This build has representative configurations only, and those not of all "
                   "families; configure with -DTEGULA_CONFIGURATIONS=all -DTEGULA_FAMILIES=all to "
                   "have all of them.";
  return whole ? ""
               : " This build lacks some families of kernels; configure with "
                 "-DTEGULA_FAMILIES=all to have all of them.";
}

void device::refuse_uncomputed(std::string_view operation, std::string_view problem,
                               DeviceProperties const& device, bool elsewhere) {
  throw argument_error(fmt::format("{}: no configuration {}computes {}.{}", operation,
                                   elsewhere ? "of this build " : "", problem,
                                   elsewhere ? missing_configurations_note(device) : ""));
}

void device::refuse_unwanted(std::string_view operation, std::string_view problem,
                             std::vector<std::pair<FamilyId, int>> const& computing) {
  constexpr std::size_t most = 4;
  std::string named;
  for (auto const& [family, number] : std::span(computing).first(std::min(most, computing.size())))
    named += fmt::format("; {}, {}", number, configuration_name(family, number));
  if (computing.size() > most) named += fmt::format("; and {} more", computing.size() - most);
  if (computing.size() == 1)
    throw argument_error(fmt::format(
        "{}: the one configuration that computes this problem is not what was asked for "
        "({}). It is{}.",
        operation, problem, named.substr(1)));
  throw argument_error(fmt::format(
      "{}: none of the {} configurations that compute this problem is what was asked for "
      "({}). They are{}.",
      operation, computing.size(), problem, named.substr(1)));
}

std::string configuration_name(FamilyId family, int number) {
  std::string name;
  family.visit([&](auto f) { name = to_string(configuration(f, number)); });
  return name;
}

}  // namespace tegula
