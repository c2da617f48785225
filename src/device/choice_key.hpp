#pragma once

#include <array>
#include <cstdint>

#include "tegula/device/arguments.hpp"
#include "tegula/device/grouped_gemm.hpp"
#include "tegula/device/properties.hpp"

/// What a choice is remembered by: all that it looks at. Of pointers, that is how they are aligned
/// and which are null.
namespace tegula::device {

using GemmKey = std::array<std::int64_t, 24>;
GemmKey key_of(GemmArguments const& arguments, DeviceProperties const& device);

using GroupedGemmKey = std::array<std::int64_t, 24>;
GroupedGemmKey key_of(GroupedGemmArguments const& arguments, DeviceProperties const& device);

}  // namespace tegula::device
