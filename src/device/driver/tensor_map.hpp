#pragma once

#include "tegula/arch/tensor_map_description.hpp"

namespace tegula::device::driver {

/// Makes a map through the driver. Throws device_error where it refuses. Precondition:
/// check(description) has passed, and a context is current.
TensorMap encode(TensorMapDescription const& description);

}  // namespace tegula::device::driver
