#pragma once

#include "../kernel.hpp"
#include "tegula/arch/ordered_access.hpp"

namespace tegula::broken {

/// A CTA may wait for another one only where both are resident: in a cluster, or in a
/// cooperative launch.
///
/// A barrier of the whole grid. CTAs start where there is room, and a CTA that waits leaves none. A
/// GPU with room for both lets it pass, today.
///
/// CUDA C++ programming guide: cooperative groups, "Grid Synchronization".
struct not_cooperative : Kernel<32> {
  static constexpr Dim3 grid = {2, 1, 1};
  struct Repaired;

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage&) const {
    std::uint32_t const ctas = grid_dim().x;
    st_global(p.out + 32 * block_idx().x + lane_id(), 1.0f);
    warp::sync();
    if (lane_id() == 0) {
      fence_acq_rel<Scope::gpu>();
      atom_add(p.flags, 1u);
      while (ld_global_relaxed<std::uint32_t, Scope::gpu>(p.flags) != ctas) {
      }
      fence_acq_rel<Scope::gpu>();
    }
    warp::sync();
    float const other = ld_global<float>(p.out + 32 * (1 - block_idx().x) + lane_id());
    st_global(p.out + 64 + 32 * block_idx().x + lane_id(), other);
  }
};

struct not_cooperative::Repaired : not_cooperative {
  static constexpr bool cooperative = true;
};

// Report:
//   09_global_memory/not_cooperative.hpp:30: kernel not_cooperative, CTA (0, 0, 0): deadlock: every
//     thread that runs reads the same memory again and again, and nobody changes it; lanes 1-31 of
//     warp 0 wait at bar.warp.sync (09_global_memory/not_cooperative.hpp:30) for lane 0; lane 0 of
//     warp 0 reads at 09_global_memory/not_cooperative.hpp:26: byte 0 of flags, which atom of warp
//     0 lane 0 (09_global_memory/not_cooperative.hpp:25) has changed last; CTA (1, 0, 0), which may
//     not have started yet, does so by atom (09_global_memory/not_cooperative.hpp:25): `static
//     constexpr bool cooperative = true;` in the kernel has all of its CTAs resident at once, or
//     the launch refused

}  // namespace tegula::broken
