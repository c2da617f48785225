#pragma once

#include "../kernel.hpp"

namespace tegula::museum {

/// A barrier of the CTA is executed by all lanes of a warp together, or by none.
///
/// A compiler that inserts barriers must see where lanes part. TileLang saw a read and a write of
/// the same buffer, and put a `__syncthreads()` between the two: inside of a branch that only even
/// lanes take. The GPU hangs, or does not, as it likes.
///
/// Mend: the barrier goes out of the branch; here none is needed in it.
/// Seen in: TileLang, https://github.com/tile-ai/tilelang/issues/1026
/// compute-sanitizer: synccheck
/// ConSan: inside a partition
/// CUTLASS: inside a work method
struct barrier_of_even_lanes : Kernel<32> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    st_shared(at(smem, 0, lane_id()), ld_global<float>(p.in + lane_id()));
    cta::sync();
    if (lane_id() % 2 == 0) {
      float const mine = ld_shared<float>(at(smem, 0, lane_id()));
      if (!p.repaired) cta::sync();
      st_shared(at(smem, 0, lane_id() ^ 1), mine);
    }
    cta::sync();
    st_global(p.out + lane_id(), ld_shared<float>(at(smem, 0, lane_id())));
  }
};

// Report:
//   01_threads/barrier_of_even_lanes.hpp:24: kernel barrier_of_even_lanes, CTA (0, 0, 0), warp 0,
//     lane 0: divergence: bar.sync is not executed by the lanes of the warp together: lane 0 is at
//     it, but lane 31 waits for it at bar.sync (01_threads/barrier_of_even_lanes.hpp:27)

}  // namespace tegula::museum
