#pragma once

#include "../kernel.hpp"

namespace tegula::museum {

/// A buffer is free when the store that reads it has read: count the groups that may still be in
/// flight.
///
/// DeepEP's copy loop has two stages, each loaded by TMA and stored by TMA. Before it loads a stage
/// again it waits until all stores but one have read. There is one: the store from that very stage.
/// So the wait returns at once, and the load writes what the store is reading.
///
/// Mend: wait for the stage's own store, which is the latest: no group may remain.
/// Seen in: DeepEP, https://github.com/deepseek-ai/DeepEP/issues/657
/// compute-sanitizer: no: TMA on both sides
/// ConSan: yes
/// CUTLASS: yes: aliasing
struct waits_for_one_store_too_few : Kernel<32> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    init(smem);
    if (lane_id() != 0) return;
    auto const load = [&](int tile) {
      SharedAddr const full = shared_address(&smem.full[tile % 2]);
      mbarrier_arrive_expect_tx(full, kBoxBytes);
      tma_load(at(smem, 0, 0, tile % 2), p.in_map, TmaCoordinate{32 * (tile % 2), 8 * (tile / 2)},
               full);
    };
    load(0), load(1);
    for (int tile = 0; tile < 4; ++tile) {
      mbarrier_wait_parity(shared_address(&smem.full[tile % 2]), tile / 2);
      tma_store(p.out_map, TmaCoordinate{32 * (tile % 2), 8 * (tile / 2)},
                at(smem, 0, 0, tile % 2));
      bulk_commit_group();
      if (tile >= 2) continue;
      if (p.repaired) {
        bulk_wait_group_read<0>();
      } else {
        bulk_wait_group_read<1>();
      }
      load(tile + 2);
    }
    bulk_wait_group<0>();
  }
};

// Report:
//   03_tma/waits_for_one_store_too_few.hpp:26: kernel waits_for_one_store_too_few, CTA (0, 0, 0),
//     warp 0, lane 0: async_overwrite: cp.async.bulk.tensor writes row 0, column 0 of stage 0 of
//     tile while a cp.async.bulk.tensor that reads it is in flight that warp 0 lane 0 issued
//     (03_tma/waits_for_one_store_too_few.hpp:32): that thread's wait for its groups
//     (03_tma/waits_for_one_store_too_few.hpp:39) leaves the latest 1 in flight, and this is of it:
//     a bulk_commit_group after each stage's store, or a bulk_wait_group_read that leaves fewer,
//     and then a barrier or an mbarrier's phase for other threads, would order them (2 times in
//     all)

}  // namespace tegula::museum
