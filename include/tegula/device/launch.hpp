#pragma once

/// The entry points. They own nothing, allocate nothing and synchronise nothing; work is queued on the
/// stream, so they can be captured in a CUDA graph, and they may be called from several threads. Neither
/// needs a workspace. On a simulated machine the work is done, and its findings thrown (sim::CheckError),
/// before they return.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "tegula/device/arguments.hpp"
#include "tegula/device/gemm_plan.hpp"
#include "tegula/device/machine.hpp"
#include "tegula/device/stream.hpp"

namespace tegula {

/// Attention forward; see AttentionArguments. Throws argument_error before anything runs (see `check` and
/// `select`), device_error where the launch fails.
void attention(Machine const& machine, AttentionArguments const& arguments, Stream stream = {});

/// D = activation(alpha A B + beta C + bias); see GemmArguments. Throws as `attention` does.
void gemm(Machine const& machine, GemmArguments const& arguments, Stream stream = {});
/// The same by a choice made before, which saves making it again: choose_gemm's for arguments that differ at
/// most in their pointers, and in these not in alignment. Precondition: checked arguments. Throws
/// argument_error for a choice of an entry that the table does not have, or one of other types, majors or
/// activation.
void gemm(Machine const& machine, GemmArguments const& arguments, GemmChoice const& choice,
          Stream stream = {});

/// The parameters of gemm_sm90 for a choice of it, with the tensor maps of A, B and D for that machine.
/// Precondition: checked arguments, and a choice for them. Throws device_error where the machine cannot make
/// the maps.
GemmSm90Params lower(Machine const& machine, GemmArguments const& arguments, GemmChoice const& choice);

/// The configurations of this build, which are chosen from.
std::span<AttentionConfig const> attention_configurations();
std::span<GemmConfig const> gemm_configurations();  ///< of gemm_sm80
std::span<GemmSm90Config const> gemm_sm90_configurations();

/// What a configuration's kernel needs.
struct KernelResources {
  int threads = 0;               ///< of a CTA
  std::size_t shared_bytes = 0;  ///< of a CTA
};
/// Throw argument_error for an index that the table does not have.
KernelResources attention_resources(int configuration);
KernelResources gemm_resources(int configuration);
KernelResources gemm_sm90_resources(int configuration);

/// Launches one configuration of a table, whatever would be chosen. Precondition: the parameters are
/// ones that the configuration computes; they are not checked. For tests and benchmarks. Throws
/// argument_error for an index that the table does not have.
void launch_attention(Machine const& machine, int configuration, AttentionParams const& params,
                      Stream stream = {});
void launch_gemm(Machine const& machine, int configuration, GemmParams const& params, Stream stream = {});
void launch_gemm(Machine const& machine, int configuration, GemmSm90Params const& params, Stream stream = {});

}  // namespace tegula
