#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// A stage is refilled after everyone has read it.
///
/// Step 2 goes into the stage of step 0, and is issued before the barrier that ends the reading of
/// step 0.
struct refilled_too_early : Kernel<64> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    auto const fill = [&](int step) {
      cp_async_ca<4>(at(smem, warp_id(), lane_id(), step % 2), p.in + 64 * step + thread_idx());
      cp_async_commit_group();
    };
    fill(0), fill(1);
    for (int step = 0; step < 2; ++step) {
      cp_async_wait_group<1>();
      cta::sync();
      float const other = ld_shared<float>(at(smem, 1 - warp_id(), lane_id(), step % 2));
      st_global(p.out + 64 * step + thread_idx(), other);
      if (p.repaired) cta::sync();
      fill(step + 2);
    }
    cp_async_wait_all();
  }
};

// Report:
//   04_cp_async/refilled_too_early.hpp:21: kernel refilled_too_early, CTA (0, 0, 0), warp 0, lane
//     0: async_read_early: ld.shared reads row 1, column 0 of stage 0 of tile while a cp.async into
//     it is in flight that warp 1 lane 0 issued (04_cp_async/refilled_too_early.hpp:14) and has not
//     waited for: its cp.async.wait_group (04_cp_async/refilled_too_early.hpp:19) leaves the latest
//     1 group in flight, and this is of it: a cp.async.commit_group for each stage, also where
//     nothing is copied, or a cp.async.wait_group by the thread that issued it, and then a
//     cta::sync, would order them (32 times in all)
//   04_cp_async/refilled_too_early.hpp:14: kernel refilled_too_early, CTA (0, 0, 0), warp 0, lane
//     0: data_race: cp.async writes row 0, column 0 of stage 0 of tile, which warp 1 lane 0 read by
//     ld.shared (04_cp_async/refilled_too_early.hpp:21), and nothing orders the two: a cta::sync
//     between them, or an arrival on an mbarrier and a wait for it, would order them (96 times in
//     all)

}  // namespace tegula::broken
