#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// A fence orders for observers in its scope; another CTA is outside of .cta.
///
/// The fences are there, and reach as far as the CTA.
///
/// PTX ISA: "Scope", "Morally strong operations".
struct scope_too_small : Kernel<32> {
  static constexpr Dim3 grid = {3, 1, 1};

  TEGULA_DEVICE static void fence(bool wide) {
    if (wide) {
      fence_acq_rel<Scope::gpu>();
    } else {
      fence_acq_rel<Scope::cta>();
    }
  }
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage&) const {
    if (lane_id() != 0) return;
    st_global(p.out + block_idx().x, 1.0f);
    fence(p.repaired);
    std::uint32_t const before = atom_add(p.flags, 1u);
    fence(p.repaired);
    if (before != 2) return;
    float sum = 0;
    for (int i = 0; i < 3; ++i) sum += ld_global<float>(p.out + i);
    st_global(p.out + 32, sum);
  }
};

// Report:
//   09_global_memory/scope_too_small.hpp:30: kernel scope_too_small, CTA (2, 0, 0), warp 0, lane 0:
//     data_race: ld.global reads byte 0 of out, which st.global of CTA (0, 0, 0), warp 0, lane 0
//     writes (09_global_memory/scope_too_small.hpp:24), with nothing between the two CTAs that
//     orders them: a fence_acq_rel<Scope::gpu> and then an atomic by the first, an atomic that sees
//     that one's and then such a fence by the second, or two launches, would order them; the fence
//     at 09_global_memory/scope_too_small.hpp:19 orders for its own CTA alone (2 times in all)

}  // namespace tegula::broken
