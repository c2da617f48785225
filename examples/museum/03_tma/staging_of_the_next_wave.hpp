#pragma once

#include "../kernel.hpp"

namespace tegula::museum {

/// One thread waits for its store; the others learn of it at a barrier.
///
/// A persistent grouped GEMM of TileOPs stages each output tile in shared memory and stores it by
/// TMA. The thread that stores waits until the store has read. The other 127 do not wait for that
/// thread, take the next tile, and write over what TMA is reading. With eight experts the tests
/// passed; with 384, most of them empty, NaNs came out.
///
/// Mend: a barrier between that thread's wait and the next tile's stores.
/// Seen in: TileOPs, https://github.com/tile-ai/TileOPs/pull/1550
/// compute-sanitizer: no: read by TMA
/// ConSan: yes
/// CUTLASS: yes: aliasing
struct staging_of_the_next_wave : Kernel<64> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    for (int wave = 0; wave < 2; ++wave) {
      if (p.repaired) cta::sync();  // the wave before has been read: thread 0 has waited for it
      for (int row = warp_id(); row < 8; row += 2) st_shared(at(smem, row, lane_id()), 1.0f);
      fence_proxy_async_shared();
      cta::sync();
      if (thread_idx() == 0) {
        tma_store(p.out_map, TmaCoordinate{32 * wave, 0}, at(smem, 0, 0));
        bulk_commit_group();
        bulk_wait_group_read<0>();
      }
    }
    if (thread_idx() == 0) bulk_wait_group<0>();
  }
};

// Report:
//   03_tma/staging_of_the_next_wave.hpp:27: kernel staging_of_the_next_wave, CTA (0, 0, 0), warp 0,
//     lane 0: data_race: cp.async.bulk.tensor reads row 1, column 0 of stage 0 of tile, which warp
//     1 lane 0 wrote by st.shared (03_tma/staging_of_the_next_wave.hpp:23), and nothing orders the
//     two: a fence_proxy_async_shared after the write, and then a barrier or an arrival on an
//     mbarrier and a wait for it, would order them
//   03_tma/staging_of_the_next_wave.hpp:23: kernel staging_of_the_next_wave, CTA (0, 0, 0), warp 0,
//     lane 1: async_overwrite: st.shared writes row 0, column 1 of stage 0 of tile while a
//     cp.async.bulk.tensor that reads it may be in flight that warp 0 lane 0 issued
//     (03_tma/staging_of_the_next_wave.hpp:27): a barrier, or an arrival of warp 0 lane 0 on an
//     mbarrier, after its bulk_wait_group_read would order them (124 times in all)

}  // namespace tegula::museum
