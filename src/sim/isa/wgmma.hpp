#pragma once

namespace tegula::sim {

struct Warpgroup;

/// Registers of a thread that are a warpgroup's wgmma's until it has waited for them: accumulators,
/// and A.
int registers_in_flight(Warpgroup const& group);

}  // namespace tegula::sim
