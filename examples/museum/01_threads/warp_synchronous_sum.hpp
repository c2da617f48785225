#pragma once

#include "../kernel.hpp"

namespace tegula::museum {

/// Lanes of a warp do not run in step: what one reads of another's needs a barrier of the warp.
///
/// Until Volta the lanes of a warp executed together, and reductions over the last 32 elements went
/// without a barrier, by a `volatile` pointer. CUDA's own samples taught it. On every GPU since
/// 2017 it is a race; `volatile` says nothing about other threads. Numba, Kokkos, Kaldi and many
/// others had to repair it.
///
/// Mend: a barrier of the warp before the loads and one after them (or a shuffle, without memory).
/// Seen in: HeCBench, https://github.com/ORNL/HeCBench/issues/91
/// Seen in: Numba, https://github.com/numba/numba/pull/6127
/// Seen in: Kokkos, https://github.com/kokkos/kokkos/pull/6630
/// compute-sanitizer: racecheck
/// ConSan: inside a partition
/// CUTLASS: inside a work method
struct warp_synchronous_sum : Kernel<32> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    float sum = ld_global<float>(p.in + lane_id());
    st_shared(at(smem, 0, lane_id()), sum);
    for (int step = 16; step > 0; step /= 2) {
      if (p.repaired) warp::sync();  // the other lanes have stored
      sum += ld_shared<float>(at(smem, 0, (lane_id() + step) % 32));
      if (p.repaired) warp::sync();  // the other lanes have loaded
      st_shared(at(smem, 0, lane_id()), sum);
    }
    if (lane_id() == 0) st_global(p.out, sum);
  }
};

// Report:
//   01_threads/warp_synchronous_sum.hpp:27: kernel warp_synchronous_sum, CTA (0, 0, 0), warp 0,
//     lane 0: uninitialized_read: ld.shared reads row 0, column 16 of stage 0 of tile, which nobody
//     has written (129 times in all)
//   01_threads/warp_synchronous_sum.hpp:24: kernel warp_synchronous_sum, CTA (0, 0, 0), warp 0,
//     lane 1: data_race: st.shared writes row 0, column 1 of stage 0 of tile, which warp 0 lane 0
//     read by ld.shared (01_threads/warp_synchronous_sum.hpp:27), and nothing orders the two: a
//     warp::sync between them would order them (31 times in all)
//   01_threads/warp_synchronous_sum.hpp:27: kernel warp_synchronous_sum, CTA (0, 0, 0), warp 0,
//     lane 16: data_race: ld.shared reads row 0, column 0 of stage 0 of tile, which warp 0 lane 0
//     wrote by st.shared (01_threads/warp_synchronous_sum.hpp:29), and nothing orders the two: a
//     warp::sync between them would order them (31 times in all)

}  // namespace tegula::museum
