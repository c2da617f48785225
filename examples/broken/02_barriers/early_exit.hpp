#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// A barrier of the CTA counts every warp; one that has exited never comes.
///
/// A warp whose rows lie outside of the tensor leaves before the barrier.
///
/// PTX ISA: bar.
struct early_exit : Kernel<128> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    bool const inside = warp_id() < 3;
    if (!p.repaired && !inside) return;
    if (inside) st_shared(at(smem, warp_id(), lane_id()), ld_global<float>(p.in + thread_idx()));
    cta::sync();
    if (inside)
      st_global(p.out + thread_idx(), ld_shared<float>(at(smem, 2 - warp_id(), lane_id())));
  }
};

// Report:
//   02_barriers/early_exit.hpp:17: kernel early_exit, CTA (0, 0, 0): deadlock: warps 0-2 wait at
//     barrier 0 (02_barriers/early_exit.hpp:17), where 96 of 128 threads have arrived; warp 3
//     exited

}  // namespace tegula::broken
