#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// A relaxed atomic counts and orders nothing: who draws the last ticket must acquire, too.
///
/// The ticket releases what its CTA has stored. The last CTA reads what the others stored, and has
/// acquired nothing.
///
/// PTX ISA: atom, "Release and Acquire Patterns".
struct ticket_without_order : Kernel<32> {
  static constexpr Dim3 grid = {3, 1, 1};

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage&) const {
    if (lane_id() != 0) return;
    st_global(p.out + block_idx().x, 1.0f);
    std::uint32_t const before = p.repaired
                                     ? atom_add<Scope::gpu, MemoryOrder::acq_rel>(p.flags, 1u)
                                     : atom_add<Scope::gpu, MemoryOrder::release>(p.flags, 1u);
    if (before != 2) return;
    float sum = 0;
    for (int i = 0; i < 3; ++i) sum += ld_global<float>(p.out + i);
    st_global(p.out + 32, sum);
  }
};

// Report:
//   09_global_memory/ticket_without_order.hpp:24: kernel ticket_without_order, CTA (2, 0, 0), warp
//     0, lane 0: data_race: ld.global reads byte 0 of out, which st.global of CTA (0, 0, 0), warp
//     0, lane 0 writes (09_global_memory/ticket_without_order.hpp:18), with nothing between the two
//     CTAs that orders them: a fence_acq_rel<Scope::gpu> between the atom at
//     09_global_memory/ticket_without_order.hpp:21 and the second access would order them (2 times
//     in all)

}  // namespace tegula::broken
