#pragma once

/// What the host must know of the kernels that this build lacks. CMake makes the translation units
/// from kernel_forms.cpp.in, which compile no kernel's body.

#include <vector>

#include "built.hpp"
#include "kernel_launch.hpp"

namespace tegula::device {

/// Of the configurations kOtherIndices, in that order.
template <KernelFamily F> std::vector<KernelLaunch> forms_of_others();

}  // namespace tegula::device
