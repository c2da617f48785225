#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// All lanes of a warp execute an aligned barrier together.
///
/// The barrier is inside of what only half of the lanes do.
///
/// PTX ISA: bar: .aligned.
struct barrier_in_a_branch : Kernel<64> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    if (lane_id() < 16) {
      st_shared(at(smem, warp_id(), lane_id()), ld_global<float>(p.in + thread_idx()));
      if (!p.repaired) cta::sync();
    }
    if (p.repaired) cta::sync();
    if (lane_id() < 16)
      st_global(p.out + thread_idx(), ld_shared<float>(at(smem, 1 - warp_id(), lane_id())));
  }
};

// Report:
//   02_barriers/barrier_in_a_branch.hpp:16: kernel barrier_in_a_branch, CTA (0, 0, 0), warp 0, lane
//     0: divergence: bar.sync needs all lanes of the warp, but lane 16 exited while lanes 0-15 wait
//     there

}  // namespace tegula::broken
