#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// Where nothing is left to load, an empty group keeps the count right.
///
/// In the last round no group follows: wait_group<1> leaves in flight what is read next.
///
/// PTX ISA: cp.async.wait_group.
struct no_empty_group : Kernel<32> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    auto const load = [&](int i) {
      cp_async_cg<16>(at(smem, 0, 4 * lane_id(), i % 2), p.in + 128 * i + 4 * lane_id());
    };
    load(0);
    cp_async_commit_group();
    for (int i = 0; i < 4; ++i) {
      if (i < 3) load(i + 1);
      if (i < 3 || p.repaired) cp_async_commit_group();
      cp_async_wait_group<1>();
      warp::sync();
      for (int row = 0; row < 4; ++row)
        st_global(p.out + 128 * i + 32 * row + lane_id(),
                  ld_shared<float>(at(smem, row, lane_id(), i % 2)));
      warp::sync();
    }
  }
};

// Report:
//   04_cp_async/no_empty_group.hpp:26: kernel no_empty_group, CTA (0, 0, 0), warp 0, lane 31:
//     async_read_early: ld.shared reads row 0, column 31 of stage 1 of tile while a cp.async into
//     it is in flight that warp 0 lane 7 issued (04_cp_async/no_empty_group.hpp:15) and has not
//     waited for: its cp.async.wait_group (04_cp_async/no_empty_group.hpp:22) leaves the latest 1
//     group in flight, and this is of it: a cp.async.commit_group for each stage, also where
//     nothing is copied, or a cp.async.wait_group by the thread that issued it, and then a
//     cta::sync, would order them (128 times in all)

}  // namespace tegula::broken
