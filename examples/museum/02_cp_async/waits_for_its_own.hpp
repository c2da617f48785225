#pragma once

#include "../kernel.hpp"

namespace tegula::museum {

/// `cp.async.wait_group` waits for the copies of the thread that executes it, and for no one
/// else's.
///
/// Five attention kernels for quantised caches waited for their copies, and then dequantised the
/// tile: each thread walks through all of it, and reads bytes that other threads have copied. The
/// prologue had a `__syncthreads()` in between, the loop had not. The project's list of things to
/// do had them as "not run-to-run deterministic" until somebody saw why.
///
/// Mend: a barrier of the CTA between the wait and the reads.
/// Seen in: ninfer-3090, https://github.com/ashalliants/ninfer-3090/pull/43
/// compute-sanitizer: racecheck
/// ConSan: cannot be written: the compiler inserts the barrier
/// CUTLASS: inside a work method
struct waits_for_its_own : Kernel<64> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    cp_async_ca<4>(at(smem, warp_id(), lane_id()), p.in + thread_idx());
    cp_async_commit_group();
    cp_async_wait_group<0>();     // this thread's copies have landed
    if (p.repaired) cta::sync();  // and everyone's
    st_global(p.out + thread_idx(), 0.5f * ld_shared<float>(at(smem, 1 - warp_id(), lane_id())));
  }
};

// Report:
//   02_cp_async/waits_for_its_own.hpp:26: kernel waits_for_its_own, CTA (0, 0, 0), warp 0, lane 0:
//     uninitialized_read: ld.shared reads row 1, column 0 of stage 0 of tile, which nobody has
//     written (32 times in all)
//   02_cp_async/waits_for_its_own.hpp:22: kernel waits_for_its_own, CTA (0, 0, 0), warp 1, lane 0:
//     data_race: cp.async writes row 1, column 0 of stage 0 of tile, which warp 0 lane 0 read by
//     ld.shared (02_cp_async/waits_for_its_own.hpp:26), and nothing orders the two: a cta::sync
//     between them, or an arrival on an mbarrier and a wait for it, would order them (64 times in
//     all)

}  // namespace tegula::museum
