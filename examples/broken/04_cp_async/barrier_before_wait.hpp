#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// The wait comes before the barrier, not after it.
///
/// At the barrier nobody has waited for anything yet; after it, each thread waits for its own
/// copies only.
struct barrier_before_wait : Kernel<64> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    cp_async_ca<4>(at(smem, warp_id(), lane_id()), p.in + thread_idx());
    cp_async_commit_group();
    if (p.repaired) cp_async_wait_group<0>();
    cta::sync();
    if (!p.repaired) cp_async_wait_group<0>();
    st_global(p.out + thread_idx(), ld_shared<float>(at(smem, 1 - warp_id(), lane_id())));
  }
};

// Report:
//   04_cp_async/barrier_before_wait.hpp:18: kernel barrier_before_wait, CTA (0, 0, 0), warp 1, lane
//     31: async_read_early: ld.shared reads row 0, column 31 of stage 0 of tile while a cp.async
//     into it is in flight that warp 0 lane 31 issued (04_cp_async/barrier_before_wait.hpp:13) and
//     has not waited for: a cp.async.wait_group by the thread that issued it, and then a cta::sync,
//     would order them (32 times in all)
//   04_cp_async/barrier_before_wait.hpp:18: kernel barrier_before_wait, CTA (0, 0, 0), warp 0, lane
//     0: data_race: ld.shared reads row 1, column 0 of stage 0 of tile, which warp 1 lane 0 wrote
//     by cp.async (04_cp_async/barrier_before_wait.hpp:13), and nothing orders the two: a
//     cp.async.wait_group by warp 1 lane 0, and then a cta::sync, or an arrival on an mbarrier and
//     a wait for it, would order them (32 times in all)

}  // namespace tegula::broken
