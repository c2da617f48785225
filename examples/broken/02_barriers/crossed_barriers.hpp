#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// Two warps that meet at two barriers meet at them in the same order.
///
/// Each waits at the barrier that the other takes second.
struct crossed_barriers : Kernel<64> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage&) const {
    int const first = p.repaired || warp_id() == 0 ? 1 : 2;
    cta::bar_sync(first, 64);
    cta::bar_sync(3 - first, 64);
    st_global(p.out + thread_idx(), 0.0f);
  }
};

// Report:
//   02_barriers/crossed_barriers.hpp:13: kernel crossed_barriers, CTA (0, 0, 0): deadlock: warp 0
//     waits at barrier 1 (02_barriers/crossed_barriers.hpp:13), where 32 of 64 threads have
//     arrived; warp 1 waits at barrier 2 (02_barriers/crossed_barriers.hpp:13), where 32 of 64
//     threads have arrived

}  // namespace tegula::broken
