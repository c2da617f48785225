#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// What a bulk store wrote is in global memory after bulk_wait_group, not after its .read form.
///
/// .read says that the source has been read. The destination comes later.
///
/// PTX ISA: cp.async.bulk.wait_group.
struct read_back_too_early : Kernel<32> {
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
//   06_tma/read_back_too_early.hpp:22: kernel read_back_too_early, CTA (0, 0, 0), warp 0, lane 0:
//     async_read_early: ld.global reads byte 0 of out, which cp.async.bulk.tensor of warp 0 lane 0
//     writes (06_tma/read_back_too_early.hpp:18), which has not been waited for: a
//     bulk_wait_group<0> by the thread that issued it, and a barrier after that, would order them

}  // namespace tegula::broken
