#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// Shuffles, votes, reductions and mma wait for lanes, and order no memory.
///
/// All lanes have come to the shuffle, but the stores before it need not have.
///
/// PTX ISA: shfl.sync, vote.sync: no word of memory; bar.warp.sync: "memory ordering among
/// participating threads".
struct shuffle_is_no_barrier : Kernel<32> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    float const value = ld_global<float>(p.in + lane_id());
    st_shared(at(smem, 0, lane_id()), value);
    float const next = warp::shfl(value, lane_id() + 1);
    if (p.repaired) warp::sync();
    st_global(p.out + lane_id(), next - ld_shared<float>(at(smem, 0, 31 - lane_id())));
  }
};

// Report:
//   03_warps/shuffle_is_no_barrier.hpp:19: kernel shuffle_is_no_barrier, CTA (0, 0, 0), warp 0,
//     lane 31: data_race: ld.shared reads row 0, column 0 of stage 0 of tile, which warp 0 lane 0
//     wrote by st.shared (03_warps/shuffle_is_no_barrier.hpp:16), and nothing orders the two: a
//     warp::sync between them would order them (32 times in all)

}  // namespace tegula::broken
