#pragma once

/// Which configuration computes attention: a pure function of the arguments, the configurations and
/// the device; and what the choice for GEMMs (gemm_plan.hpp) shares with it.

#include <optional>

#include "tegula/device/arguments.hpp"
#include "tegula/device/family.hpp"
#include "tegula/device/properties.hpp"

namespace tegula {

/// Throws argument_error for a device without multiprocessors.
void check(DeviceProperties const& device);

/// The bytes that a GEMM may copy at once: 16 where a and b, and in bytes lda, ldb, the batch
/// strides and the contiguous extents of A and B (k or m, k or n, by their majors), are multiples
/// of 16, so that no vector crosses an edge; else one element.
int vector_bytes(GemmArguments const& arguments);

/// A way to compute attention: a configuration of one of the families.
struct AttentionChoice {
  FamilyId kernel = attention_sm80;
  int configuration = 0;  ///< its number
};

/// What a caller asks of the choice; what is left out is free.
struct AttentionConstraints {
  std::optional<FamilyId> kernel = {};
  std::optional<int> configuration = {};  ///< its number; needs `kernel`
};

/// The choice among the configurations of this build: of the last family that can compute the
/// problem, the one with the least rounds of CTAs over the multiprocessors times the work of a CTA.
/// Preconditions: checked arguments, at least one multiprocessor. Throws argument_error, with what
/// the build lacks, where none can.
AttentionChoice choose_attention(AttentionArguments const& arguments,
                                 DeviceProperties const& device,
                                 AttentionConstraints const& wanted = {});

/// Bytes of AttentionArguments::workspace with which keys are computed in as many parts as are
/// best; 0 where that is one. Whatever workspace the arguments have. Preconditions and errors as
/// choose_attention's.
std::int64_t attention_workspace_bytes(AttentionArguments const& arguments,
                                       DeviceProperties const& device,
                                       AttentionConstraints const& wanted = {});

/// (batch, head) pairs whose CTAs run side by side (AttentionParams::heads_per_l2_group): with a
/// causal mask, where the rows that see the most keys should go first across as many heads as
/// possible, all whose K and V the L2 cache serves together; else 1, for all CTAs take the same
/// time. Precondition: checked arguments.
int attention_heads_per_l2_group(AttentionArguments const& arguments);

}  // namespace tegula
