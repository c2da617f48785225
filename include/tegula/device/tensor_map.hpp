#pragma once

#include <string>

#include "tegula/arch/tensor_map.hpp"
#include "tegula/arch/tensor_map_description.hpp"
#include "tegula/device/machine.hpp"

/// Making tensor maps for a machine.
namespace tegula {

/// All of a description in one line, for messages.
std::string to_string(TensorMapDescription const& description);

/// Holds a description to the rules of TMA (sim::refusal, sim/tensor_map.hpp): throws
/// argument_error with the sentence on the one that it breaks.
void check(TensorMapDescription const& description);

/// Makes the map of a description for kernels on that machine. Throws argument_error as check()
/// does, and device_error where the machine has no TMA or its driver refuses.
TensorMap encode(Machine const& machine, TensorMapDescription const& description);

}  // namespace tegula
