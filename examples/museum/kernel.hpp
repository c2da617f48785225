#pragma once

#include "../broken/warpgroup_kernel.hpp"

/// What the museum's kernels are made of: the gallery's base kernels and buffers.
namespace tegula::museum {

using broken::kBoxBytes;
using broken::Kernel;
using broken::Params;
using broken::WarpgroupKernel;

}  // namespace tegula::museum
