#pragma once

#include "../kernel.hpp"

namespace tegula::museum {

/// A wait counts groups that have been committed; the copies of the open group it does not see.
///
/// nvFuser's code generator put the commit at the end of the loop body, after the wait. A wait for
/// all but the last N groups then lets one more fly than its author counted. By `cp.async.ca` the
/// results were right, by `.cg` some elements of a row were not. The instruction was switched off
/// first; that the commit comes too late was seen in the thread below.
///
/// Mend: commit before the wait.
/// Seen in: nvFuser, https://github.com/csarofeen/pytorch/pull/2457
/// compute-sanitizer: racecheck
/// ConSan: yes
/// CUTLASS: inside a work method
struct commits_after_the_wait : Kernel<32> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    cp_async_ca<4>(at(smem, 0, lane_id(), 0), p.in + lane_id());
    cp_async_commit_group();
    for (int tile = 0; tile < 3; ++tile) {
      cp_async_ca<4>(at(smem, 0, lane_id(), (tile + 1) % 2), p.in + 32 * (tile + 1) + lane_id());
      if (p.repaired) cp_async_commit_group();
      cp_async_wait_group<1>();  // all but the copies of the next tile
      st_global(p.out + 32 * tile + lane_id(), ld_shared<float>(at(smem, 0, lane_id(), tile % 2)));
      if (!p.repaired) cp_async_commit_group();
    }
    cp_async_wait_all();
  }
};

// Report:
//   02_cp_async/commits_after_the_wait.hpp:27: kernel commits_after_the_wait, CTA (0, 0, 0), warp
//     0, lane 0: async_read_early: ld.shared reads row 0, column 0 of stage 0 of tile while a
//     cp.async into it is in flight that warp 0 lane 0 issued
//     (02_cp_async/commits_after_the_wait.hpp:21) and has not waited for: its cp.async.wait_group
//     (02_cp_async/commits_after_the_wait.hpp:26) leaves the latest 1 group in flight, and this is
//     of it: a cp.async.commit_group for each stage, also where nothing is copied, or a
//     cp.async.wait_group that covers it would order them (64 times in all)
//   02_cp_async/commits_after_the_wait.hpp:24: kernel commits_after_the_wait, CTA (0, 0, 0), warp
//     0, lane 0: async_overwrite: cp.async writes row 0, column 0 of stage 0 of tile while a
//     cp.async into it is in flight that warp 0 lane 0 issued
//     (02_cp_async/commits_after_the_wait.hpp:21) and has not waited for: its cp.async.wait_group
//     (02_cp_async/commits_after_the_wait.hpp:26) leaves the latest 1 group in flight, and this is
//     of it: a cp.async.commit_group for each stage, also where nothing is copied, or a
//     cp.async.wait_group that covers it would order them (64 times in all)

}  // namespace tegula::museum
