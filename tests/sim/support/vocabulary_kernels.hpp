#pragma once

#include "collective_kernels.hpp"
#include "ported_kernels.hpp"
#include "scalar_kernels.hpp"

namespace tegula::vocabulary_kernels {

using instruction_kernels::Kernels;

template <class... A, class... B, class... C>
constexpr auto joined(Kernels<A...>, Kernels<B...>, Kernels<C...>) {
  return Kernels<A..., B..., C...>{};
}

/// The kernels of collective_kernels.hpp, scalar_kernels.hpp and ported_kernels.hpp.
using AllKernels = decltype(joined(collective_kernels::AllKernels{}, scalar_kernels::AllKernels{},
                                   ported_kernels::AllKernels{}));

}  // namespace tegula::vocabulary_kernels
