#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// What one warp reads, another may overwrite after a barrier that both took part in.
///
/// The loop's barrier orders the reads after the writes of the same round. Nothing orders the
/// writes of the next round after these reads: a warp that is ahead overwrites what the other has
/// not read yet.
struct missing_second_barrier : Kernel<64> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    float sum = 0;
    for (int round = 0; round < 2; ++round) {
      st_shared(at(smem, warp_id(), lane_id()), ld_global<float>(p.in + 64 * round + thread_idx()));
      cta::sync();
      sum += ld_shared<float>(at(smem, 1 - warp_id(), lane_id()));
      if (p.repaired) cta::sync();
    }
    st_global(p.out + thread_idx(), sum);
  }
};

// Report:
//   02_barriers/missing_second_barrier.hpp:18: kernel missing_second_barrier, CTA (0, 0, 0), warp
//     0, lane 0: data_race: ld.shared reads row 1, column 0 of stage 0 of tile, which warp 1 lane 0
//     wrote by st.shared (02_barriers/missing_second_barrier.hpp:16), and nothing orders the two: a
//     cta::sync between them, or an arrival on an mbarrier and a wait for it, would order them (64
//     times in all)

}  // namespace tegula::broken
