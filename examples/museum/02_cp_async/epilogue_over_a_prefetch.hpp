#pragma once

#include "../kernel.hpp"

namespace tegula::museum {

/// Shared memory changes hands when every copy into it has landed, also those that nobody needs.
///
/// CUTLASS's multistage main loop prefetches beyond the last tile, so that the loop body stays the
/// same. The epilogue then stages the accumulators in the same memory. A copy that is still in
/// flight lands on top of them. The maintainer who answered had found it himself some weeks before;
/// the repair waits for all copies and for all threads at the end of the main loop.
///
/// Mend: wait for all groups, then for all threads, before the memory changes hands.
/// Seen in: CUTLASS, https://github.com/NVIDIA/cutlass/issues/1326
/// compute-sanitizer: racecheck
/// ConSan: yes
/// CUTLASS: yes: aliasing
struct epilogue_over_a_prefetch : Kernel<64> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    auto const prefetch = [&](int tile) {
      cp_async_ca<4>(at(smem, warp_id(), lane_id(), tile % 2), p.in + 64 * tile + thread_idx());
      cp_async_commit_group();
    };
    float sum = 0;
    prefetch(0);
    for (int tile = 0; tile < 2; ++tile) {
      prefetch(tile + 1);  // in the last round, of a tile that nobody needs
      cp_async_wait_group<1>();
      cta::sync();
      sum += ld_shared<float>(at(smem, 1 - warp_id(), lane_id(), tile % 2));
      cta::sync();
    }
    if (p.repaired) {
      cp_async_wait_group<0>();
      cta::sync();
    }
    st_shared(at(smem, 1 - warp_id(), lane_id()), sum);  // the epilogue's staging
    cta::sync();
    st_global(p.out + thread_idx(), ld_shared<float>(at(smem, warp_id(), lane_id())));
    cp_async_wait_all();
  }
};

// Report:
//   02_cp_async/epilogue_over_a_prefetch.hpp:38: kernel epilogue_over_a_prefetch, CTA (0, 0, 0),
//     warp 0, lane 31: async_overwrite: st.shared writes row 1, column 31 of stage 0 of tile while
//     a cp.async into it is in flight that warp 1 lane 31 issued
//     (02_cp_async/epilogue_over_a_prefetch.hpp:22) and has not waited for: its cp.async.wait_group
//     (02_cp_async/epilogue_over_a_prefetch.hpp:29) leaves the latest 1 group in flight, and this
//     is of it: a cp.async.commit_group for each stage, also where nothing is copied, or a
//     cp.async.wait_group by the thread that issued it, and then a cta::sync, would order them (64
//     times in all)
//   02_cp_async/epilogue_over_a_prefetch.hpp:40: kernel epilogue_over_a_prefetch, CTA (0, 0, 0),
//     warp 1, lane 31: async_read_early: ld.shared reads row 1, column 31 of stage 0 of tile while
//     a cp.async into it is in flight that warp 1 lane 31 issued
//     (02_cp_async/epilogue_over_a_prefetch.hpp:22) and has not waited for: its cp.async.wait_group
//     (02_cp_async/epilogue_over_a_prefetch.hpp:29) leaves the latest 1 group in flight, and this
//     is of it: a cp.async.commit_group for each stage, also where nothing is copied, or a
//     cp.async.wait_group that covers it would order them (64 times in all)

}  // namespace tegula::museum
