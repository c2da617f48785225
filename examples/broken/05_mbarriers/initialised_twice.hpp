#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// A live mbarrier is not initialised again: mbarrier_inval comes first.
///
/// A persistent kernel makes its mbarriers anew for each tile, while somebody may be waiting.
///
/// PTX ISA: mbarrier.init, mbarrier.inval.
struct initialised_twice : Kernel<32> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    SharedAddr const full = shared_address(&smem.full[0]);
    for (int tile = 0; tile < 2; ++tile) {
      if (lane_id() == 0 && (!p.repaired || tile == 0)) mbarrier_init(full, 32);
      warp::sync();
      mbarrier_arrive(full);
      mbarrier_wait_parity(full, p.repaired ? tile : 0);
      warp::sync();
    }
  }
};

// Report:
//   05_mbarriers/initialised_twice.hpp:16: kernel initialised_twice, CTA (0, 0, 0), warp 0, lane 0:
//     mbarrier_misuse: mbarrier.init of element 0 of full, which is an mbarrier already
//     (05_mbarriers/initialised_twice.hpp:16): it must be invalidated first

}  // namespace tegula::broken
