#pragma once

#include "tegula/arch/source_location.hpp"

namespace tegula::sim {

class Cta;
struct Warpgroup;

/// Registers of a thread that are a warpgroup's wgmma's until it has waited for them: accumulators,
/// and A.
int registers_in_flight(Warpgroup const& group);

/// The current thread accesses a register: a finding, where a wgmma in flight owns it.
void check_wgmma_register(Cta& cta, void const* place, SourceLocation where);

}  // namespace tegula::sim
