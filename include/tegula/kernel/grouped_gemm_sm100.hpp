#pragma once

#include "tegula/kernel/gemm_sm100.hpp"
#include "tegula/kernel/grouped_gemm_sm100_config.hpp"

namespace tegula {

/// The Blackwell GEMM (kernel/gemm_sm100.hpp) of groups: D = A B^T + C for each, as
/// grouped_gemm_sm90 has them. A family of its own, for it is launched with other things.
template <GroupedGemmSm100Config C> struct GroupedGemmSm100 : GemmSm100<GemmSm100Config(C)> {
  static_assert(C.grouped);
};

}  // namespace tegula
