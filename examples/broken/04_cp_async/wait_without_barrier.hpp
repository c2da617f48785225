#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// Others read what a thread copied by cp.async after that thread's wait, and a barrier after that.
///
/// Each thread waits for its own copies. That says nothing of those of its neighbours.
///
/// PTX ISA: cp.async: "Non-bulk copy", visible to the executing thread.
struct wait_without_barrier : Kernel<64> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    cp_async_ca<4>(at(smem, warp_id(), lane_id()), p.in + thread_idx());
    cp_async_commit_group();
    cp_async_wait_group<0>();
    if (p.repaired) cta::sync();
    st_global(p.out + thread_idx(), ld_shared<float>(at(smem, 1 - warp_id(), lane_id())));
  }
};

// Report:
//   04_cp_async/wait_without_barrier.hpp:18: kernel wait_without_barrier, CTA (0, 0, 0), warp 0,
//     lane 0: uninitialized_read: ld.shared reads row 1, column 0 of stage 0 of tile, which nobody
//     has written (32 times in all)
//   04_cp_async/wait_without_barrier.hpp:14: kernel wait_without_barrier, CTA (0, 0, 0), warp 1,
//     lane 0: data_race: cp.async writes row 1, column 0 of stage 0 of tile, which warp 0 lane 0
//     read by ld.shared (04_cp_async/wait_without_barrier.hpp:18), and nothing orders the two: a
//     cta::sync between them, or an arrival on an mbarrier and a wait for it, would order them (64
//     times in all)

}  // namespace tegula::broken
