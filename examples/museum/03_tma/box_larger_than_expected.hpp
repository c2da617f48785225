#pragma once

#include "../kernel.hpp"

namespace tegula::museum {

/// A phase expects as many bytes as the copies bring, which is what their boxes hold.
///
/// Mirage's GEMM for small batches expects the bytes of the rows that there are. The box of the
/// tensor map was clamped likewise in one of two places where maps are made; in the other it kept
/// its 16 rows. TMA always brings the whole box. The surplus goes below zero, the phase never
/// completes, and all 128 workers stand still at their first tile.
///
/// Mend: expect the bytes of the whole box.
/// Seen in: Mirage, https://github.com/mirage-project/mirage/pull/705
/// compute-sanitizer: racecheck, as a deadlock
/// ConSan: yes: bytes
/// CUTLASS: yes: bytes
struct box_larger_than_expected : Kernel<32> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    init(smem);
    SharedAddr const full = shared_address(&smem.full[0]);
    int const rows = p.repaired ? 8 : 4;
    if (lane_id() == 0) {
      mbarrier_arrive_expect_tx(full, rows * 32 * 4);
      tma_load(at(smem, 0, 0), p.in_map, TmaCoordinate{0, 0}, full);
    }
    mbarrier_wait_parity(full, 0);
    st_global(p.out + lane_id(), ld_shared<float>(at(smem, 0, lane_id())));
  }
};

// Report:
//   03_tma/box_larger_than_expected.hpp:28: kernel box_larger_than_expected, CTA (0, 0, 0):
//     deadlock: warp 0 waits at mbarrier element 0 of full (03_tma/box_larger_than_expected.hpp:28)
//     for the phase of parity 0, which has 512 bytes more than it expects

}  // namespace tegula::museum
