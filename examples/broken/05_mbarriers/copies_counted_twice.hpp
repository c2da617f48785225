#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// cp.async.mbarrier.arrive adds the arrival that it makes to the count of its phase.
///
/// Init has counted it, too: the phase lacks an arrival for every lane, for ever.
///
/// PTX ISA: cp.async.mbarrier.arrive, .noinc.
struct copies_counted_twice : Kernel<32> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    SharedAddr const full = shared_address(&smem.full[0]);
    if (lane_id() == 0) mbarrier_init(full, 32);
    warp::sync();
    cp_async_cg<16>(at(smem, 0, 4 * lane_id()), p.in + 4 * lane_id());
    if (p.repaired)
      cp_async_mbarrier_arrive_noinc(full);
    else
      cp_async_mbarrier_arrive(full);
    mbarrier_wait_parity(full, 0);
    st_global(p.out + lane_id(), ld_shared<float>(at(smem, 0, lane_id())));
  }
};

// Report:
//   05_mbarriers/copies_counted_twice.hpp:22: kernel copies_counted_twice, CTA (0, 0, 0): deadlock:
//     warp 0 waits at mbarrier element 0 of full (05_mbarriers/copies_counted_twice.hpp:22) for the
//     phase of parity 0, which lacks 32 of 32 arrivals: a cp.async.mbarrier.arrive
//     (05_mbarriers/copies_counted_twice.hpp:21) makes an arrival that it has added to the count,
//     and cp_async_mbarrier_arrive_noinc one of those that init has counted

}  // namespace tegula::broken
