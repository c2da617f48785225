#pragma once

/// Which configuration of the attention kernel computes a problem: a pure function of the arguments, the
/// table and the device, whose result can be printed; and what the choice for GEMMs shares with it.

#include <span>
#include <string>

#include "tegula/device/arguments.hpp"
#include "tegula/device/properties.hpp"

namespace tegula {

/// "attention_sm80 f16 d64 128x64 4 warps 2 stages causal ex2_approx": every field that tells configurations
/// of a table apart.
std::string to_string(AttentionConfig const& config);
/// "gemm_sm80 f16->f32 A:k B:mn 128x128x32 2x2 warps 3 stages 16-byte".
std::string to_string(GemmConfig const& config);

/// Throws argument_error for a device without multiprocessors.
void check(DeviceProperties const& device);

/// The bytes that a GEMM may copy at once: 16 where a and b, and in bytes lda, ldb, the batch strides and the
/// contiguous extents of A and B (k or m, k or n, by their majors), are multiples of 16, so that no vector
/// crosses an edge; else one element.
int vector_bytes(GemmArguments const& arguments);

/// The index in `table` of the attention configuration that computes the problem soonest by an estimate: of
/// those of the type, head dimension, mask and exponential asked for, with shared memory that the device has,
/// the one with the least rounds of CTAs over the multiprocessors times the work of a CTA. Preconditions:
/// checked arguments, at least one multiprocessor. Throws argument_error, with what the table lacks, where
/// none can. (Of a GEMM: choose_gemm, device/gemm_plan.hpp.)
int select(AttentionArguments const& arguments, std::span<AttentionConfig const> table,
           DeviceProperties const& device);

/// (batch, head) pairs whose CTAs run side by side (AttentionParams::heads_per_l2_group): with a causal mask,
/// where the rows that see the most keys should go first across as many heads as possible, all whose K and V
/// the L2 cache serves together; else 1, for all CTAs take the same time. Precondition: checked arguments.
int attention_heads_per_l2_group(AttentionArguments const& arguments);

}  // namespace tegula
