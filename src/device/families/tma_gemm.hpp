#pragma once

/// What the families whose GEMMs load and store by TMA are launched with alike.

#include <optional>
#include <vector>

#include "tegula/arch/tensor_map_description.hpp"
#include "tegula/device/arguments.hpp"
#include "tegula/device/gemm_plan.hpp"
#include "tegula/device/machine.hpp"
#include "tegula/device/properties.hpp"
#include "tegula/kernel/block_scale.hpp"
#include "tegula/kernel/gemm_sm90_config.hpp"
#include "tegula/sim/global_tensor.hpp"

namespace tegula::device {

/// Clusters of `size` CTAs, one CTA an SM, that the device runs at a time: a cluster lies within a
/// GPC, whose SMs come in pairs, and an H200 was seen to run 30 clusters of four CTAs, 15 of eight,
/// 38 of three.
int resident_clusters(int size, DeviceProperties const& device, GemmCostModel const& model);

/// `rows_a`, `rows_b`: that the boxes of the operand's last tile bring, where these are fewer than
/// the tile's.
GemmSm90Problem tma_problem(Machine const& machine, GemmArguments const& g, TmaBoxes const& a_boxes,
                            TmaBoxes const& b_boxes, std::optional<int> rows_a = {},
                            std::optional<int> rows_b = {});

/// `two_widths`: whether D is cut into tiles of both; else nobody looks at the maps of narrower
/// ones.
EpilogueSm90Params tma_epilogue(Machine const& machine, GemmArguments const& g,
                                EpilogueSm90Spec const& s, bool two_widths);

/// The tensor map of an operand's block scales, of elements of (rows, k) in each of `batches`
/// matrices: a box is `pieces` along k of `times_128_rows`.
TensorMapDescription block_scale_map(void const* scales, std::int64_t rows, std::int64_t k,
                                     BlockScale const& how, std::int64_t batches, int pieces,
                                     int times_128_rows);

/// The tensors of a launch as its caller knows them: where D is transposed, the kernel's A is B.
/// But for those whose tensor maps the simulated machine did not encode.
std::vector<sim::GlobalTensor> describe_tma_gemm(Major a_major, Major b_major,
                                                 EpilogueSm90Spec const& spec,
                                                 GemmSm90Params const& params);

}  // namespace tegula::device
