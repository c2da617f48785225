#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// A load completes on the mbarrier of the stage that it fills.
///
/// Every load names the first stage's. The second stage's waits for bytes that come elsewhere.
///
/// PTX ISA: cp.async.bulk.tensor, mbarrier::complete_tx::bytes.
struct mbarrier_of_another_stage : Kernel<64> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    init(smem, 1);
    for (int i = 0; i < 4; ++i) {
      int const stage = i % 2, round = i / 2;
      SharedAddr const full = shared_address(&smem.full[stage]),
                       empty = shared_address(&smem.empty[stage]);
      if (thread_idx() == 0) {
        mbarrier_wait_parity(empty, round ^ 1);
        mbarrier_arrive_expect_tx(full, kBoxBytes);
        tma_load(at(smem, 0, 0, stage), p.in_map, TmaCoordinate{32 * stage, 8 * round},
                 p.repaired ? full : shared_address(&smem.full[0]));
      } else if (warp_id() == 1) {
        mbarrier_wait_parity(full, round);
        st_global(p.out + 32 * i + lane_id(), ld_shared<float>(at(smem, 0, lane_id(), stage)));
        warp::sync();
        if (lane_id() == 0) mbarrier_arrive(empty);
      }
    }
  }
};

// Report:
//   06_tma/mbarrier_of_another_stage.hpp:20: kernel mbarrier_of_another_stage, CTA (0, 0, 0):
//     deadlock: warp 1 waits at mbarrier element 1 of full
//     (06_tma/mbarrier_of_another_stage.hpp:25) for the phase of parity 0, which lacks 1024 bytes;
//     lane 0 of warp 0 waits at mbarrier element 1 of empty
//     (06_tma/mbarrier_of_another_stage.hpp:20) for the phase of parity 0, which lacks 1 of 1
//     arrival; mbarrier element 0 of full gets 1024 bytes more than it expects

}  // namespace tegula::broken
