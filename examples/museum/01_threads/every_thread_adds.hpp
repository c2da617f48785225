#pragma once

#include "../kernel.hpp"

namespace tegula::museum {

/// A value that all threads share is updated by one of them.
///
/// After a reduction every thread of the CTA holds the sum, and a kernel of flash-linear-attention,
/// written in TileLang, adds it to an accumulator in shared memory: `s[0] = s[0] + x`. Every thread
/// does it. Most often they all read the old value and write the same new one, and the result is
/// right. Now and then a warp reads what another has already updated, and the term counts twice.
///
/// Mend: one thread adds.
/// Seen in: flash-linear-attention, https://github.com/fla-org/flash-linear-attention/pull/890
/// compute-sanitizer: racecheck
/// ConSan: inside a partition
/// CUTLASS: inside a work method
struct every_thread_adds : Kernel<64> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    if (thread_idx() == 0) st_shared(at(smem, 0, 0), 0.0f);
    cta::sync();
    float const term = ld_global<float>(p.in + 1);  // the same for every thread
    if (!p.repaired || thread_idx() == 0)
      st_shared(at(smem, 0, 0), ld_shared<float>(at(smem, 0, 0)) + term);
    cta::sync();
    if (thread_idx() == 0) st_global(p.out, ld_shared<float>(at(smem, 0, 0)));
  }
};

// Report:
//   01_threads/every_thread_adds.hpp:25: kernel every_thread_adds, CTA (0, 0, 0), warp 0, lane 0:
//     data_race: ld.shared reads row 0, column 0 of stage 0 of tile, which warp 1 lane 30 wrote by
//     st.shared (01_threads/every_thread_adds.hpp:25), and nothing orders the two: a cta::sync
//     between them, or an arrival on an mbarrier and a wait for it, would order them (126 times in
//     all)

}  // namespace tegula::museum
