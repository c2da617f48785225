#pragma once

#include "../kernel.hpp"

namespace tegula::museum {

/// A vote tells every lane what the others decided, and nothing about what they have written.
///
/// The hash tables of cuCollections collect results in shared memory, and flush the buffer when it
/// is full. The lanes agree on that by a vote, and then read what the others have stored. The
/// maintainers first took the vote for a barrier of memory. It is not one: PTX promises that of
/// `bar.warp.sync` alone.
///
/// Mend: a barrier of the warp beside the vote.
/// Seen in: cuCollections, https://github.com/NVIDIA/cuCollections/pull/337
/// compute-sanitizer: racecheck
/// ConSan: inside a partition
/// CUTLASS: inside a work method
struct vote_is_no_barrier : Kernel<32> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    float const x = ld_global<float>(p.in + lane_id());
    st_shared(at(smem, 0, lane_id()), x);
    bool const full = warp::any(x >= 31);
    if (p.repaired) warp::sync();  // the stores are visible to every lane
    if (full) st_global(p.out + lane_id(), ld_shared<float>(at(smem, 0, 31 - lane_id())));
  }
};

// Report:
//   01_threads/vote_is_no_barrier.hpp:25: kernel vote_is_no_barrier, CTA (0, 0, 0), warp 0, lane
//     31: data_race: ld.shared reads row 0, column 0 of stage 0 of tile, which warp 0 lane 0 wrote
//     by st.shared (01_threads/vote_is_no_barrier.hpp:22), and nothing orders the two: a warp::sync
//     between them would order them (32 times in all)

}  // namespace tegula::museum
