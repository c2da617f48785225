#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// What one warp stores, another may load after a barrier that both took part in.
///
/// Warps run in no order. Each of the two writes a row, and reads the other's. In this run the load
/// came first, so it reads what nobody has written, and the store is found to race with it.
///
/// PTX ISA: bar; "Memory Consistency Model", "Causality Order".
struct missing_barrier : Kernel<64> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    st_shared(at(smem, warp_id(), lane_id()), ld_global<float>(p.in + thread_idx()));
    if (p.repaired) cta::sync();
    st_global(p.out + thread_idx(), ld_shared<float>(at(smem, 1 - warp_id(), lane_id())));
  }
};

// Report:
//   02_barriers/missing_barrier.hpp:17: kernel missing_barrier, CTA (0, 0, 0), warp 0, lane 0:
//     uninitialized_read: ld.shared reads row 1, column 0 of stage 0 of tile, which nobody has
//     written (32 times in all)
//   02_barriers/missing_barrier.hpp:15: kernel missing_barrier, CTA (0, 0, 0), warp 1, lane 0:
//     data_race: st.shared writes row 1, column 0 of stage 0 of tile, which warp 0 lane 0 read by
//     ld.shared (02_barriers/missing_barrier.hpp:17), and nothing orders the two: a cta::sync
//     between them, or an arrival on an mbarrier and a wait for it, would order them (64 times in
//     all)

}  // namespace tegula::broken
