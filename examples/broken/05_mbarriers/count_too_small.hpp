#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// An mbarrier counts each arrival of a phase.
///
/// It is made for one arrival a warp, and every lane arrives. The arrivals too many belong to
/// phases to come.
///
/// PTX ISA: "Phase of the mbarrier object": expected arrivals.
struct count_too_small : Kernel<64> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    SharedAddr const empty = shared_address(&smem.empty[0]);
    if (thread_idx() == 0) {
      mbarrier_init(empty, 2);
      mbarrier_expect_tx(empty, kBoxBytes);  // the phase waits for a copy, too
    }
    cta::sync();
    if (!p.repaired || lane_id() == 0) mbarrier_arrive(empty);
    if (thread_idx() == 0) mbarrier_complete_tx(empty, kBoxBytes);
    mbarrier_wait_parity(empty, 0);
  }
};

// Report:
//   05_mbarriers/count_too_small.hpp:21: kernel count_too_small, CTA (0, 0, 0), warp 1, lane 1:
//     mbarrier_misuse: mbarrier.arrive on element 0 of empty, which has had the 2 arrivals of a
//     phase that its init (05_mbarriers/count_too_small.hpp:17) says (it waits for 1024 bytes): its
//     count is too small, or this arrival is one too many (31 times in all)
//   05_mbarriers/count_too_small.hpp:23: kernel count_too_small, CTA (0, 0, 0), warp 1, lane 0:
//     mbarrier_misuse: a wait for phase 0 of element 0 of empty may come when phase 1 is complete,
//     too: nothing has that one wait for this thread, which then waits for phase 2: its init
//     (05_mbarriers/count_too_small.hpp:17) counts 2 arrivals, and 4 threads have arrived in phases
//     0 and 1 (05_mbarriers/count_too_small.hpp:21), the later without having waited for the
//     former: a count of all that arrive in a phase would order them (8 times in all)
//   05_mbarriers/count_too_small.hpp:23: kernel count_too_small, CTA (0, 0, 0): deadlock: lanes
//     30-31 of warp 0 wait at mbarrier element 0 of empty (05_mbarriers/count_too_small.hpp:23) for
//     the phase of parity 0, which lacks 1 of 2 arrivals; warp 1 exited

}  // namespace tegula::broken
