#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// A flag hands over what was written before it with a fence on either side: write, fence, flag;
/// flag, fence, read.
///
/// The last CTA to come adds up what the others left. The counter alone does not order
/// their stores.
///
/// PTX ISA: "Release and Acquire Patterns".
struct flag_without_fence : Kernel<32> {
  static constexpr Dim3 grid = {3, 1, 1};

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage&) const {
    if (lane_id() != 0) return;
    st_global(p.out + block_idx().x, 1.0f);
    if (p.repaired) fence_acq_rel<Scope::gpu>();
    std::uint32_t const before = atom_add(p.flags, 1u);
    if (p.repaired) fence_acq_rel<Scope::gpu>();
    if (before != 2) return;
    float sum = 0;
    for (int i = 0; i < 3; ++i) sum += ld_global<float>(p.out + i);
    st_global(p.out + 32, sum);
  }
};

// Report:
//   09_global_memory/flag_without_fence.hpp:25: kernel flag_without_fence, CTA (2, 0, 0), warp 0,
//     lane 0: data_race: ld.global reads byte 0 of out, which st.global of CTA (0, 0, 0), warp 0,
//     lane 0 writes (09_global_memory/flag_without_fence.hpp:19), with nothing between the two CTAs
//     that orders them: a fence_acq_rel<Scope::gpu> and then an atomic by the first, an atomic that
//     sees that one's and then such a fence by the second, or two launches, would order them (2
//     times in all)

}  // namespace tegula::broken
