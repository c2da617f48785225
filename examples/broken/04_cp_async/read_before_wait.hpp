#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// A thread reads what it copied by cp.async after it has waited for the copy's group.
///
/// wait_group<1> lets the latest group fly on. Here there is one group, so nothing is waited for.
///
/// PTX ISA: cp.async.wait_group.
struct read_before_wait : Kernel<32> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    cp_async_ca<4>(at(smem, 0, lane_id()), p.in + lane_id());
    cp_async_commit_group();
    cp_async_wait_group<1>();
    if (p.repaired) cp_async_wait_group<0>();
    st_global(p.out + lane_id(), ld_shared<float>(at(smem, 0, lane_id())));
  }
};

// Report:
//   04_cp_async/read_before_wait.hpp:18: kernel read_before_wait, CTA (0, 0, 0), warp 0, lane 0:
//     async_read_early: ld.shared reads row 0, column 0 of stage 0 of tile while a cp.async into it
//     is in flight that warp 0 lane 0 issued (04_cp_async/read_before_wait.hpp:14) and has not
//     waited for: its cp.async.wait_group (04_cp_async/read_before_wait.hpp:16) leaves the latest 1
//     group in flight, and this is of it: a cp.async.commit_group for each stage, also where
//     nothing is copied, or a cp.async.wait_group that covers it would order them (32 times in all)

}  // namespace tegula::broken
