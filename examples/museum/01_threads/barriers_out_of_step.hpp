#pragma once

#include "../kernel.hpp"

namespace tegula::museum {

/// Every warp passes the same barriers, as often and in the same order.
///
/// llama.cpp repaired a race in its attention kernels by one more `__syncthreads()`. In some
/// configurations only part of the warps came to that line. A barrier counts arrivals and does not
/// ask at which line: the next `__syncthreads()` of the others completed it, and from there on the
/// warps met one barrier apart. The race was gone where it had been found, and another one was
/// born, which showed with long contexts.
///
/// Mend: the barrier goes out of the condition, and every warp passes it.
/// Seen in: llama.cpp, https://github.com/ggml-org/llama.cpp/pull/13469
/// Seen in: llama.cpp, the first repair: https://github.com/ggml-org/llama.cpp/pull/13438
/// compute-sanitizer: racecheck
/// ConSan: inside a partition
/// CUTLASS: inside a work method
struct barriers_out_of_step : Kernel<64> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    float sum = 0;
    for (int step = 0; step < 2; ++step) {
      bool const masked = warp_id() == 0;     // these rows have a mask to load
      if (p.repaired || masked) cta::sync();  // the tile has been read
      st_shared(at(smem, warp_id(), lane_id()), ld_global<float>(p.in + 64 * step + thread_idx()));
      cta::sync();  // the tile is there
      sum += ld_shared<float>(at(smem, 1 - warp_id(), lane_id()));
    }
    st_global(p.out + thread_idx(), sum);
    if (!p.repaired && warp_id() == 1) cta::sync(), cta::sync();  // the kernel's later barriers
  }
};

// Report:
//   01_threads/barriers_out_of_step.hpp:29: kernel barriers_out_of_step, CTA (0, 0, 0), warp 1,
//     lane 31: uninitialized_read: ld.shared reads row 0, column 31 of stage 0 of tile, which
//     nobody has written (32 times in all)
//   01_threads/barriers_out_of_step.hpp:27: kernel barriers_out_of_step, CTA (0, 0, 0), warp 0,
//     lane 0: data_race: st.shared writes row 0, column 0 of stage 0 of tile, which warp 1 lane 0
//     read by ld.shared (01_threads/barriers_out_of_step.hpp:29), and nothing orders the two: a
//     cta::sync between them, or an arrival on an mbarrier and a wait for it, would order them (32
//     times in all)

}  // namespace tegula::museum
