#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// cp.async.mbarrier.arrive.noinc makes one of the arrivals that init has counted.
///
/// Init counts lane 0's own arrival and none of the copies': the phase is complete before they
/// land.
///
/// PTX ISA: cp.async.mbarrier.arrive.
struct copies_not_counted : Kernel<32> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    SharedAddr const full = shared_address(&smem.full[0]);
    if (lane_id() == 0) mbarrier_init(full, p.repaired ? 33 : 1);
    warp::sync();
    cp_async_cg<16>(at(smem, 0, 4 * lane_id()), p.in + 4 * lane_id());
    cp_async_mbarrier_arrive_noinc(full);
    if (lane_id() == 0) mbarrier_arrive(full);
    mbarrier_wait_parity(full, 0);
    st_global(p.out + lane_id(), ld_shared<float>(at(smem, 0, lane_id())));
  }
};

// Report:
//   05_mbarriers/copies_not_counted.hpp:22: kernel copies_not_counted, CTA (0, 0, 0), warp 0, lane
//     0: async_read_early: ld.shared reads row 0, column 0 of stage 0 of tile while a cp.async into
//     it is in flight that warp 0 lane 0 issued (05_mbarriers/copies_not_counted.hpp:18) and has
//     not waited for: a wait for the mbarrier of the cp.async.mbarrier.arrive that follows it, for
//     a phase that counts that arrival, would order them
//   05_mbarriers/copies_not_counted.hpp:22: kernel copies_not_counted, CTA (0, 0, 0), warp 0, lane
//     1: data_race: ld.shared reads row 0, column 1 of stage 0 of tile, which warp 0 lane 0 wrote
//     by cp.async (05_mbarriers/copies_not_counted.hpp:18), and nothing orders the two: a wait for
//     the mbarrier of the cp.async.mbarrier.arrive that follows it, for a phase that counts that
//     arrival, would order them (31 times in all)

}  // namespace tegula::broken
