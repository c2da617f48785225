#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// The source of a bulk store is written again after bulk_wait_group_read, by the thread that
/// issued it, and a barrier.
///
/// The epilogue fills its one tile for the next store while the last one may still be reading it.
///
/// PTX ISA: cp.async.bulk.wait_group: .read.
struct source_overwritten : Kernel<64> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    for (int step = 0; step < 2; ++step) {
      if (p.repaired && thread_idx() == 0) bulk_wait_group_read<0>();
      cta::sync();
      for (int row = warp_id(); row < 8; row += 2) st_shared(at(smem, row, lane_id()), 1.0f);
      fence_proxy_async_shared();
      cta::sync();
      if (thread_idx() == 0) {
        tma_store(p.out_map, TmaCoordinate{32 * step, 0}, at(smem, 0, 0));
        bulk_commit_group();
      }
    }
    if (thread_idx() == 0) bulk_wait_group<0>();
  }
};

// Report:
//   06_tma/source_overwritten.hpp:18: kernel source_overwritten, CTA (0, 0, 0), warp 1, lane 31:
//     async_overwrite: st.shared writes row 1, column 31 of stage 0 of tile while a
//     cp.async.bulk.tensor that reads it is in flight that warp 0 lane 0 issued
//     (06_tma/source_overwritten.hpp:22): a bulk_wait_group_read by the thread that issued it, and
//     then a barrier or an mbarrier's phase for other threads, would order them (256 times in all)

}  // namespace tegula::broken
