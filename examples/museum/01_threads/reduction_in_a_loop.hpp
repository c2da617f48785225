#pragma once

#include "../kernel.hpp"

namespace tegula::museum {

/// Who reads shared memory in a loop is waited for before the next round writes it.
///
/// PyTorch's block reductions end where thread 0 adds up what the warps have left in shared memory.
/// A cleanup removed the barrier in front of them, because the reduction begins with one. In a loop
/// that was the barrier which kept the next round's stores behind thread 0's reads. A review the
/// next day saw it, and the cleanup was reverted. The same race has come back in the reductions of
/// many projects since.
///
/// Mend: a second barrier, after the reads.
/// Seen in: PyTorch, https://github.com/pytorch/pytorch/pull/5250
/// Seen in: cuML, https://github.com/NVIDIA/cuml/pull/6578
/// compute-sanitizer: racecheck
/// ConSan: inside a partition
/// CUTLASS: inside a work method
struct reduction_in_a_loop : Kernel<64> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    for (int row = 0; row < 2; ++row) {
      st_shared(at(smem, warp_id(), lane_id()), ld_global<float>(p.in + 64 * row + thread_idx()));
      cta::sync();  // every part is there
      if (thread_idx() == 0) {
        float sum = 0;
        for (int i = 0; i < 64; ++i) sum += ld_shared<float>(at(smem, i / 32, i % 32));
        st_global(p.out + row, sum);
      }
      if (p.repaired) cta::sync();  // thread 0 has read them all
    }
  }
};

// Report:
//   01_threads/reduction_in_a_loop.hpp:28: kernel reduction_in_a_loop, CTA (0, 0, 0), warp 0, lane
//     0: data_race: ld.shared reads row 1, column 0 of stage 0 of tile, which warp 1 lane 0 wrote
//     by st.shared (01_threads/reduction_in_a_loop.hpp:24), and nothing orders the two: a cta::sync
//     between them, or an arrival on an mbarrier and a wait for it, would order them (63 times in
//     all)

}  // namespace tegula::museum
