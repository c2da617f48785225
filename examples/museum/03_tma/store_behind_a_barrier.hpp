#pragma once

#include "../kernel.hpp"

namespace tegula::museum {

/// A barrier orders threads. What TMA is to read needs a fence between the proxies as well.
///
/// An attention kernel of cuDNN's front end wrote its output tile to shared memory, met at a named
/// barrier, and one thread stored the tile by TMA. TMA reads through the asynchronous proxy, which
/// the barrier says nothing about. With four processes on one GPU 120 elements of two identical
/// launches differed. FlashKDA's audit found two stores of the same kind.
///
/// Mend: a `fence.proxy.async` by every thread that has written, before the barrier.
/// Seen in: cuDNN frontend, https://github.com/NVIDIA/cudnn-frontend/pull/784
/// Seen in: FlashKDA, https://github.com/MoonshotAI/FlashKDA/issues/24
/// compute-sanitizer: no: proxies
/// ConSan: yes: proxies
/// CUTLASS: not documented
struct store_behind_a_barrier : Kernel<64> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    for (int row = warp_id(); row < 8; row += 2) st_shared(at(smem, row, lane_id()), 1.0f);
    if (p.repaired) fence_proxy_async_shared();
    cta::bar_sync(1, 64);
    if (thread_idx() == 0) {
      tma_store(p.out_map, TmaCoordinate{0, 0}, at(smem, 0, 0));
      bulk_commit_group();
      bulk_wait_group<0>();
    }
  }
};

// Report:
//   03_tma/store_behind_a_barrier.hpp:26: kernel store_behind_a_barrier, CTA (0, 0, 0), warp 0,
//     lane 0: proxy_race: cp.async.bulk.tensor reads row 0, column 0 of stage 0 of tile, which warp
//     0 lane 0 wrote by st.shared (03_tma/store_behind_a_barrier.hpp:22) without a
//     fence.proxy.async after that: a fence_proxy_async_shared between the two would order them

}  // namespace tegula::museum
