#pragma once

#include "tegula/kernel/gemm_sm100.hpp"
#include "tegula/kernel/gemm_sm100_config.hpp"

namespace tegula {

/// The Blackwell GEMM (kernel/gemm_sm100.hpp) of operands with block scales, a family of its own,
/// for it is launched with more.
template <ScaledGemmSm100Config C> struct ScaledGemmSm100 : GemmSm100<GemmSm100Config(C)> {
  static_assert(ScaledGemmSm100::scaled);
};

}  // namespace tegula
