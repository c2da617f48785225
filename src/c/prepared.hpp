#pragma once

#include <fmt/format.h>

#include "tegula/device/error.hpp"
#include "tegula/device/machine.hpp"
#include "tegula/device/prepared_launch.hpp"
#include "tegula/tegula.h"

struct tegula_launch {
  tegula::PreparedLaunch held;
};

namespace tegula::c {

/// A prepared call. Throws argument_error for a simulated machine: the caller's memory is not its.
template <class Arguments>
tegula_launch* prepared(char const* function, Machine const& machine, Arguments const& arguments) {
  if (machine.is_simulated())
    throw argument_error(
        fmt::format("{}: the machine is the {}, whose launches copy their arguments each time; it "
                    "must be a GPU.",
                    function, machine.name()));
  return new tegula_launch{PreparedLaunch(machine, arguments)};
}

}  // namespace tegula::c
