#pragma once

#include "machine/cta.hpp"

/// What the families of instructions on tensor memory share.
namespace tegula::sim {

/// Ends the cluster where its generation has no tensor memory.
void check_tcgen05(Cta& cta, Instruction instruction, SourceLocation where);
/// Reports columns that are not allocated as a whole; false where they must not be touched.
bool check_tensor_columns(Cta& cta, Instruction instruction, TensorAddr address, int columns,
                          SourceLocation where);
/// Whether the register of a lane is one that a tcgen05.ld in flight is to write, and which.
bool is_being_loaded(Warp const& warp, int lane, void const* place, SourceLocation& by);

}  // namespace tegula::sim
