#pragma once

#include <vector>

#include "tegula/kernel/attention_config.hpp"
#include "tegula/kernel/gemm_config.hpp"
#include "tegula/kernel/gemm_sm90_config.hpp"
#include "tegula/sim/global_tensor.hpp"

/// The tensors of a launch of the library's kernels, for the checker of the simulated machine: with their
/// names of rows and columns, and which of them every launch with such parameters reads, or writes, in full.
namespace tegula {

/// A, B, C where beta is not 0, D and the bias.
std::vector<sim::GlobalTensor> global_tensors(GemmConfig const& config, GemmParams const& params);
/// The same; but for those whose tensor maps the simulated machine did not encode.
std::vector<sim::GlobalTensor> global_tensors(GemmSm90Config const& config, GemmSm90Params const& params);
/// Q, K, V, O, and lse where it is not null.
std::vector<sim::GlobalTensor> global_tensors(AttentionConfig const& config, AttentionParams const& params);

}  // namespace tegula
