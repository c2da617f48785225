#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// Two threads that store to one place without an order between them race, also where nobody minds
/// which one wins.
///
/// Each warp's lane 0 leaves its sum, and both use the same word.
///
/// PTX ISA: "Conflict and Data-races".
struct two_writers : Kernel<64> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    int const sum = warp::reduce_add(thread_idx());
    int const row = p.repaired ? warp_id() : 0;
    if (lane_id() == 0) st_shared(at(smem, row, 0), static_cast<float>(sum));
    cta::sync();
    if (thread_idx() < (p.repaired ? 2 : 1))
      st_global(p.out + thread_idx(), ld_shared<float>(at(smem, thread_idx(), 0)));
  }
};

// Report:
//   02_barriers/two_writers.hpp:17: kernel two_writers, CTA (0, 0, 0), warp 1, lane 0: data_race:
//     st.shared writes row 0, column 0 of stage 0 of tile, which warp 0 lane 0 wrote by st.shared
//     (02_barriers/two_writers.hpp:17), and nothing orders the two: a cta::sync between them, or an
//     arrival on an mbarrier and a wait for it, would order them

}  // namespace tegula::broken
