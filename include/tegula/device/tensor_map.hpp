#pragma once

#include <string>

#include "tegula/arch/tensor_map.hpp"
#include "tegula/arch/tensor_map_description.hpp"
#include "tegula/device/machine.hpp"

/// Making tensor maps for a machine.
namespace tegula {

/// All of a description in one line, for messages.
std::string to_string(TensorMapDescription const& description);

/// Holds a description to the rules of cuTensorMapEncodeTiled (CUDA driver API, "Tensor Map Object
/// Management"), whose driver answers a breach of any with one and the same error: throws argument_error that
/// names the argument, its value and what is accepted.
void check(TensorMapDescription const& description);

/// Makes the map of a description for kernels on that machine. Throws argument_error as check() does, and
/// device_error where the machine has no TMA or its driver refuses.
TensorMap encode(Machine const& machine, TensorMapDescription const& description);

}  // namespace tegula
