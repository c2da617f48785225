#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// A phase that expects bytes nobody brings never ends.
///
/// Two boxes are expected and one is loaded.
struct too_many_bytes : Kernel<32> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    init(smem);
    SharedAddr const full = shared_address(&smem.full[0]);
    if (lane_id() == 0) {
      mbarrier_arrive_expect_tx(full, p.repaired ? kBoxBytes : 2 * kBoxBytes);
      tma_load(at(smem, 0, 0), p.in_map, TmaCoordinate{0, 0}, full);
    }
    mbarrier_wait_parity(full, 0);
    st_global(p.out + lane_id(), ld_shared<float>(at(smem, 0, lane_id())));
  }
};

// Report:
//   05_mbarriers/too_many_bytes.hpp:18: kernel too_many_bytes, CTA (0, 0, 0): deadlock: warp 0
//     waits at mbarrier element 0 of full (05_mbarriers/too_many_bytes.hpp:18) for the phase of
//     parity 0, which lacks 1024 bytes

}  // namespace tegula::broken
