#pragma once

/// The entry points. They own nothing, allocate nothing and synchronise nothing; work is queued on
/// the stream, so they can be captured in a CUDA graph, and they may be called from several
/// threads. Neither needs a workspace, and both are faster at some problems with one. On a
/// simulated machine the work is done, and its findings thrown (sim::CheckError), before they
/// return.

#include "tegula/device/arguments.hpp"
#include "tegula/device/family.hpp"
#include "tegula/device/gemm_plan.hpp"
#include "tegula/device/machine.hpp"
#include "tegula/device/selection.hpp"
#include "tegula/device/stream.hpp"

namespace tegula {

/// Attention forward; see AttentionArguments. Throws argument_error before anything runs (see
/// `check` and `select`), device_error where the launch fails.
void attention(Machine const& machine, AttentionArguments const& arguments, Stream stream = {});
/// The same by a choice made before, as for a GEMM: see there.
void attention(Machine const& machine, AttentionArguments const& arguments,
               AttentionChoice const& choice, Stream stream = {});

/// D = activation(alpha A B + beta C + bias); see GemmArguments. The choice of a configuration is
/// made once for problems that are alike but for their pointers. Throws as `attention` does.
void gemm(Machine const& machine, GemmArguments const& arguments, Stream stream = {});
/// The same by a choice made before, which saves making it again: choose_gemm's for arguments that
/// differ at most in their pointers, and in these not in alignment. Precondition: checked
/// arguments. Throws argument_error for a choice of a configuration that there is not, or one that
/// does not compute such arguments.
void gemm(Machine const& machine, GemmArguments const& arguments, GemmChoice const& choice,
          Stream stream = {});

/// Bytes of GemmArguments::workspace with which `gemm` is fastest, found once for problems that are
/// alike; 0 where it needs none. Whatever workspace the arguments have. Throws as `gemm` does.
std::int64_t gemm_workspace_bytes(Machine const& machine, GemmArguments const& arguments);

/// The parameters of gemm_sm90 for a choice of it, with the tensor maps of A, B and D for that
/// machine. Precondition: checked arguments, and a choice for them. Throws device_error where the
/// machine cannot make the maps.
GemmSm90Params lower(Machine const& machine, GemmArguments const& arguments,
                     GemmChoice const& choice);

namespace device {
/// `params` is one of the family's Params.
void launch(Machine const& machine, FamilyId family, int configuration, void const* params,
            Stream stream);
}  // namespace device

/// Launches one configuration of a family, by its number, whatever would be chosen. Precondition:
/// the parameters are ones that the configuration computes; they are not checked. For tests and
/// benchmarks. Throws argument_error for a number that there is not.
template <KernelFamily F>
void launch_kernel(Machine const& machine, F family, int configuration,
                   typename F::Params const& params, Stream stream = {}) {
  device::launch(machine, family, configuration, &params, stream);
}

}  // namespace tegula
