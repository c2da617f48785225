#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// A box is stored by the swizzle that it was laid out by.
///
/// The map of the output was encoded without one: pieces of 16 bytes change places within each row
/// but the first.
///
/// PTX ISA: "Swizzling modes".
struct stored_by_another_map : Kernel<32> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    init(smem);
    SharedAddr const full = shared_address(&smem.full[0]);
    if (lane_id() != 0) return;
    mbarrier_arrive_expect_tx(full, kBoxBytes);
    tma_load(at(smem, 0, 0), p.repaired ? p.in_map : p.swizzled_map, TmaCoordinate{0, 0}, full);
    mbarrier_wait_parity(full, 0);
    tma_store(p.out_map, TmaCoordinate{0, 0}, at(smem, 0, 0));
    bulk_commit_group();
    bulk_wait_group<0>();
  }
};

// Report:
//   06_tma/stored_by_another_map.hpp:21: kernel stored_by_another_map, CTA (0, 0, 0), warp 0, lane
//     0: wrong_layout: cp.async.bulk.tensor reads row 1, column 0 of stage 0 of tile by no swizzle,
//     where a cp.async.bulk.tensor that warp 0 lane 0 issued (06_tma/stored_by_another_map.hpp:19)
//     has put other elements, by the swizzle of 128 bytes

}  // namespace tegula::broken
