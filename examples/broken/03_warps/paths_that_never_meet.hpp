#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// The lanes that a mask names execute the same instruction.
///
/// Half of the lanes wait for the others at a shuffle, and these for those at a reduction.
///
/// PTX ISA: shfl.sync, redux.sync: membermask.
struct paths_that_never_meet : Kernel<32> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage&) const {
    std::uint32_t const mask =
        p.repaired ? (lane_id() < 16 ? 0xffffu : 0xffff0000u) : warp::kAllLanes;
    int value = lane_id();
    if (lane_id() < 16) {
      value = warp::shfl_xor(value, 1, mask);
    } else {
      value = warp::reduce_add(value, mask);
    }
    st_global(p.out + lane_id(), static_cast<float>(value));
  }
};

// Report:
//   03_warps/paths_that_never_meet.hpp:20: kernel paths_that_never_meet, CTA (0, 0, 0), warp 0,
//     lane 16: divergence: redux.sync is not executed by the lanes of the warp together: lane 16 is
//     at it, but lanes 0-15 wait for it at shfl.sync (03_warps/paths_that_never_meet.hpp:18)

}  // namespace tegula::broken
