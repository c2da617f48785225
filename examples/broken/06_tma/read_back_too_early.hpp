#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// What a bulk store wrote is in global memory after bulk_wait_group, not after its .read form.
///
/// .read says that the source has been read. The destination comes later.
///
/// PTX ISA: cp.async.bulk.wait_group.
struct read_back_too_early : Kernel<32> {
  static constexpr bool at_every_schedule = false;  // once it has landed, nothing shows

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    for (int row = 0; row < 8; ++row) st_shared(at(smem, row, lane_id()), 1.0f);
    fence_proxy_async_shared();
    warp::sync();
    if (lane_id() != 0) return;
    tma_store(p.out_map, TmaCoordinate{0, 0}, at(smem, 0, 0));
    bulk_commit_group();
    bulk_wait_group_read<0>();
    if (p.repaired) bulk_wait_group<0>();
    st_global(p.out + 32, ld_global<float>(p.out) + 1);
    bulk_wait_group<0>();
  }
};

// Report:
//   06_tma/read_back_too_early.hpp:24: kernel read_back_too_early, CTA (0, 0, 0), warp 0, lane 0:
//     uninitialized_read: ld.global reads byte 0 of out, which nobody has written

}  // namespace tegula::broken
