#pragma once

#include "../kernel.hpp"

namespace tegula::museum {

/// A fence orders on the paths that execute it: an empty loop has none.
///
/// FlashKDA's other case: the state is set to zero by all threads, updated in a loop over tiles,
/// and stored by TMA. The fence stands in the loop, after each update. A sequence of length zero
/// never enters the loop. Test with the empty problem, too.
///
/// Mend: the fence comes after the loop.
/// Seen in: FlashKDA, https://github.com/MoonshotAI/FlashKDA/issues/24
/// compute-sanitizer: no: proxies
/// ConSan: yes: proxies
/// CUTLASS: not documented
struct fence_in_a_loop_not_taken : Kernel<64> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    int const tiles = 0;  // an empty sequence
    for (int row = warp_id(); row < 8; row += 2) st_shared(at(smem, row, lane_id()), 0.0f);
    for (int tile = 0; tile < tiles; ++tile) {
      for (int row = warp_id(); row < 8; row += 2) st_shared(at(smem, row, lane_id()), 1.0f);
      fence_proxy_async_shared();
    }
    if (p.repaired) fence_proxy_async_shared();
    cta::sync();
    if (thread_idx() == 0) {
      tma_store(p.out_map, TmaCoordinate{0, 0}, at(smem, 0, 0));
      bulk_commit_group();
      bulk_wait_group<0>();
    }
  }
};

// Report:
//   03_tma/fence_in_a_loop_not_taken.hpp:29: kernel fence_in_a_loop_not_taken, CTA (0, 0, 0), warp
//     0, lane 0: proxy_race: cp.async.bulk.tensor reads row 0, column 0 of stage 0 of tile, which
//     warp 0 lane 0 wrote by st.shared (03_tma/fence_in_a_loop_not_taken.hpp:21) without a
//     fence.proxy.async after that: a fence_proxy_async_shared between the two would order them

}  // namespace tegula::museum
