#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// A phase is complete when its count of arrivals is, whoever has made them.
///
/// Two warps write, and each arrives once. The mbarrier is made for one arrival: whoever waits goes
/// on behind the first, and the second completes the next phase.
///
/// PTX ISA: "Phase of the mbarrier object".
struct one_writer_counted : Kernel<96> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    SharedAddr const full = shared_address(&smem.full[0]);
    if (thread_idx() == 0) mbarrier_init(full, p.repaired ? 2 : 1);
    cta::sync();
    if (warp_id() < 2) {
      st_shared(at(smem, warp_id(), lane_id()), 1.0f);
      warp::sync();
      if (lane_id() == 0) mbarrier_arrive(full);
    } else {
      mbarrier_wait_parity(full, 0);
      st_global(p.out + lane_id(), ld_shared<float>(at(smem, 0, lane_id())) +
                                       ld_shared<float>(at(smem, 1, lane_id())));
    }
  }
};

// Report:
//   05_mbarriers/one_writer_counted.hpp:23: kernel one_writer_counted, CTA (0, 0, 0), warp 2, lane
//     0: mbarrier_misuse: a wait for phase 0 of element 0 of full may come when phase 1 is
//     complete, too: nothing has that one wait for this thread, which then waits for phase 2: its
//     init (05_mbarriers/one_writer_counted.hpp:16) counts 1 arrival, and 2 threads have arrived in
//     phases 0 and 1 (05_mbarriers/one_writer_counted.hpp:21), the later without having waited for
//     the former: a count of all that arrive in a phase would order them
//   05_mbarriers/one_writer_counted.hpp:25: kernel one_writer_counted, CTA (0, 0, 0), warp 2, lane
//     0: data_race: ld.shared reads row 1, column 0 of stage 0 of tile, which warp 1 lane 0 wrote
//     by st.shared (05_mbarriers/one_writer_counted.hpp:19), and nothing orders the two: a
//     cta::sync between them, or an arrival on an mbarrier and a wait for it, would order them (32
//     times in all)

}  // namespace tegula::broken
