#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// A lock is given back after a fence, as it is taken before one.
///
/// The fence behind the compare-and-swap says nothing of what is stored after it: the next owner
/// may see the lock free and the old value.
///
/// PTX ISA: "Release and Acquire Patterns".
struct unlocked_without_fence : Kernel<32> {
  static constexpr Dim3 grid = {3, 1, 1};

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage&) const {
    if (lane_id() != 0) return;
    std::uint32_t *const lock = p.flags, *const count = p.flags + 1;
    while (atom_cas(lock, 0u, 1u) != 0) {
    }
    fence_acq_rel<Scope::gpu>();
    st_global(count, ld_global<std::uint32_t>(count) + 1);
    if (p.repaired) fence_acq_rel<Scope::gpu>();
    atom_exch(lock, 0u);
  }
};

// Report:
//   09_global_memory/unlocked_without_fence.hpp:22: kernel unlocked_without_fence, CTA (1, 0, 0),
//     warp 0, lane 0: data_race: st.global writes byte 4 of flags, which st.global of CTA (0, 0,
//     0), warp 0, lane 0 writes, with nothing between the two CTAs that orders them: a
//     fence_acq_rel<Scope::gpu> between the first access, which follows the fence at
//     09_global_memory/unlocked_without_fence.hpp:21, and the atomic after it would order them (3
//     times in all)

}  // namespace tegula::broken
