#pragma once

#include "tegula/arch/tensor_map_description.hpp"

namespace tegula::device {

/// Makes a map through the driver of the current device. Throws device_error where the driver has
/// no cuTensorMapEncodeTiled (of im2col: cuTensorMapEncodeIm2col), or refuses. Precondition:
/// check(description) has passed.
TensorMap encode_by_driver(TensorMapDescription const& description);

}  // namespace tegula::device
