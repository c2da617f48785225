#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// The one who reads after a flag needs a fence as much as the one who wrote before it.
///
/// Without a fence between the counter and the loads, the loads may have been done before it.
///
/// PTX ISA: "Release and Acquire Patterns".
struct fence_on_one_side : Kernel<32> {
  static constexpr Dim3 grid = {3, 1, 1};

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage&) const {
    if (lane_id() != 0) return;
    st_global(p.out + block_idx().x, 1.0f);
    fence_acq_rel<Scope::gpu>();
    std::uint32_t const before = atom_add(p.flags, 1u);
    if (p.repaired) fence_acq_rel<Scope::gpu>();
    if (before != 2) return;
    float sum = 0;
    for (int i = 0; i < 3; ++i) sum += ld_global<float>(p.out + i);
    st_global(p.out + 32, sum);
  }
};

// Report:
//   09_global_memory/fence_on_one_side.hpp:23: kernel fence_on_one_side, CTA (2, 0, 0), warp 0,
//     lane 0: data_race: ld.global reads byte 0 of out, which st.global of CTA (0, 0, 0), warp 0,
//     lane 0 writes (09_global_memory/fence_on_one_side.hpp:17), with nothing between the two CTAs
//     that orders them: a fence_acq_rel<Scope::gpu> between the atom at
//     09_global_memory/fence_on_one_side.hpp:19 and the second access would order them (2 times in
//     all)

}  // namespace tegula::broken
