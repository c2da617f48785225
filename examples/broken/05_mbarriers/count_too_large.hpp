#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// A phase that counts an arrival nobody makes never ends.
///
/// The mbarrier is made for every lane, and one lane of each warp arrives.
struct count_too_large : Kernel<64> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    SharedAddr const empty = shared_address(&smem.empty[0]);
    if (thread_idx() == 0) mbarrier_init(empty, p.repaired ? 2 : 64);
    cta::sync();
    if (lane_id() == 0) mbarrier_arrive(empty);
    mbarrier_wait_parity(empty, 0);
  }
};

// Report:
//   05_mbarriers/count_too_large.hpp:16: kernel count_too_large, CTA (0, 0, 0): deadlock: warps 0-1
//     wait at mbarrier element 0 of empty (05_mbarriers/count_too_large.hpp:16) for the phase of
//     parity 0, which lacks 62 of 64 arrivals

}  // namespace tegula::broken
