#pragma once

#include "tegula/arch/tensor_map.hpp"
#include "tegula/kernel/gemm_sm100_config.hpp"
#include "tegula/kernel/gemm_sm90_config.hpp"
#include "tegula/kernel/grouped_gemm_sm90_config.hpp"
#include "tegula/pipeline/group_tiles.hpp"

namespace tegula {

/// One of grouped_gemm_sm100, A and B K-major, tiles dealt beforehand: a type of its own, for a
/// family is known by its configuration's.
struct GroupedGemmSm100Config : GemmSm100Config {
  constexpr bool operator==(GroupedGemmSm100Config const&) const = default;
};

/// Who computes which tile of D.
struct GroupedGemmSm100Schedule {
  int clusters = 1;  ///< in the grid: CTAs, or pairs of them
  GroupTiles tiles;
};

/// What the kernel is launched with. The tensor maps describe A as (k, rows, 1), or where masked as
/// (k, rows of a group, groups), and B as (k, n, groups), or with Grouping::k as (k, n, 1), with
/// the boxes of a_fetch and b_fetch; `problem` says which have groups.
struct GroupedGemmSm100Params {
  GemmSm90Problem problem;
  GroupedGemmSm100Schedule schedule;
  GroupedGemmOutput epilogue;
  TensorMap scale_a, scale_b;  ///< read with block scales only: as ScaledGemmSm100Params has them
};

}  // namespace tegula
