#pragma once

#include "tegula/arch/source_location.hpp"
#include "tegula/macros.hpp"
#if !TEGULA_GPU
#include "tegula/sim/hooks.hpp"
#endif

/// Overlap of a kernel with the one before it in its stream: PTX ISA, griddepcontrol (sm_90).
/// Without the launch attribute for it (programmatic stream serialization; a kernel's
/// `programmatic_dependent_launch`) both do nothing.
namespace tegula {

/// Waits until the grids this one depends on have completed and their writes to memory are visible.
TEGULA_DEVICE void griddepcontrol_wait(
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile("griddepcontrol.wait;" ::: "memory");
#else
  sim::griddepcontrol_wait(where);
#endif
}

/// Lets the grids that depend on this one start, once every CTA has executed it or exited.
TEGULA_DEVICE void griddepcontrol_launch_dependents(
    [[maybe_unused]] SourceLocation where = SourceLocation::current()) {
#if TEGULA_GPU
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#else
  sim::griddepcontrol_launch_dependents(where);
#endif
}

}  // namespace tegula
