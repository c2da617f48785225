#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// Groups are counted by each lane for itself.
///
/// Lanes without a piece of stage 1 commit no group for it. Their last group is then stage 0's, and
/// wait_group<1> leaves that in flight.
///
/// PTX ISA: cp.async.commit_group.
struct commit_in_a_branch : Kernel<32> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    auto const load = [&](int stage, int lanes) {
      if (lane_id() < lanes) {
        cp_async_cg<16>(at(smem, 0, 4 * lane_id(), stage), p.in + 128 * stage + 4 * lane_id());
        if (!p.repaired) cp_async_commit_group();
      }
      if (p.repaired) cp_async_commit_group();
    };
    load(0, 32);
    load(1, 8);
    cp_async_wait_group<1>();  // stage 0 is there
    warp::sync();
    for (int row = 0; row < 4; ++row)
      st_global(p.out + 32 * row + lane_id(), ld_shared<float>(at(smem, row, lane_id())));
    cp_async_wait_group<0>();
    warp::sync();
    st_global(p.out + 128 + lane_id(), ld_shared<float>(at(smem, 0, lane_id(), 1)));
  }
};

// Report:
//   04_cp_async/commit_in_a_branch.hpp:27: kernel commit_in_a_branch, CTA (0, 0, 0), warp 0, lane
//     31: async_read_early: ld.shared reads row 1, column 31 of stage 0 of tile while a cp.async
//     into it is in flight that warp 0 lane 15 issued (04_cp_async/commit_in_a_branch.hpp:17) and
//     has not waited for: its cp.async.wait_group (04_cp_async/commit_in_a_branch.hpp:24) leaves
//     the latest 1 group in flight, and this is of it: a cp.async.commit_group for each stage, also
//     where nothing is copied, or a cp.async.wait_group by the thread that issued it, and then a
//     cta::sync, would order them (64 times in all)
//   04_cp_async/commit_in_a_branch.hpp:27: kernel commit_in_a_branch, CTA (0, 0, 0), warp 0, lane
//     11: data_race: ld.shared reads row 1, column 11 of stage 0 of tile, which warp 0 lane 10
//     wrote by cp.async (04_cp_async/commit_in_a_branch.hpp:17), and nothing orders the two: a
//     cp.async.wait_group by warp 0 lane 10, and then a warp::sync, would order them (32 times in
//     all)

}  // namespace tegula::broken
