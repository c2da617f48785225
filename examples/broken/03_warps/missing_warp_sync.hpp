#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// The lanes of a warp do not run in step: what one stores, another may load after a warp::sync.
///
/// Since Volta lanes have program counters of their own, and a compiler may move an access of one
/// past that of another.
///
/// PTX ISA: bar.warp.sync.
struct missing_warp_sync : Kernel<32> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    st_shared(at(smem, 0, lane_id()), ld_global<float>(p.in + lane_id()));
    if (p.repaired) warp::sync();
    st_global(p.out + lane_id(), ld_shared<float>(at(smem, 0, 31 - lane_id())));
  }
};

// Report:
//   03_warps/missing_warp_sync.hpp:17: kernel missing_warp_sync, CTA (0, 0, 0), warp 0, lane 0:
//     uninitialized_read: ld.shared reads row 0, column 31 of stage 0 of tile, which nobody has
//     written (16 times in all)
//   03_warps/missing_warp_sync.hpp:15: kernel missing_warp_sync, CTA (0, 0, 0), warp 0, lane 16:
//     data_race: st.shared writes row 0, column 16 of stage 0 of tile, which warp 0 lane 15 read by
//     ld.shared (03_warps/missing_warp_sync.hpp:17), and nothing orders the two: a warp::sync
//     between them would order them (32 times in all)

}  // namespace tegula::broken
