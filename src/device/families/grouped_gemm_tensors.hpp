#pragma once

/// What the families of grouped GEMMs are launched with alike, and the tensors of their launches.

#include <vector>

#include "describe.hpp"
#include "tegula/arch/tensor_map_description.hpp"
#include "tegula/device/grouped_gemm.hpp"
#include "tegula/pipeline/group_tiles.hpp"

namespace tegula::device {

/// Whether each group has a B of its own.
constexpr bool has_many_b(Grouping grouping) {
  return grouping == Grouping::contiguous || grouping == Grouping::masked;
}

/// The tiles of checked arguments with defaults, those of a cluster being `cluster_n` columns wide.
GroupTiles group_tiles(GroupedGemmArguments const& g, int cluster_n, int band);
/// Where D goes and C comes from.
GroupedGemmOutput grouped_output(GroupedGemmArguments const& g);

/// Whether a launch's groups and extents are ones; else it has no tensors to describe.
bool describable(GroupTiles const& tiles, GroupedGemmOutput const& out);
/// An operand of rank 3, or its scales, by its tensor map: nothing where the simulated machine did
/// not encode it. `k_first`: whether the map's first axis is k, not the rows. Which rows the groups
/// have is not known before the kernel runs.
void describe_group_operand(std::vector<GlobalTensor>& tensors, Names const& names,
                            TensorMap const& map, bool k_first, Grouping grouping);
/// D, and C where there is one.
void describe_group_output(std::vector<GlobalTensor>& tensors, DType type, GroupTiles const& tiles,
                           GroupedGemmOutput const& out);

}  // namespace tegula::device
