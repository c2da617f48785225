#pragma once

#include "../kernel.hpp"

namespace tegula::museum {

/// A multicast writes to every CTA of its mask, and waits for all of them to be ready for it.
///
/// A persistent GEMM stages its output in the memory of the operands. Before the next tile the
/// leader waits for its own epilogue, and then loads by multicast: into its own shared memory, and
/// into the peer's, whose epilogue may not be done. All wrong elements were in the output of rank
/// 1.
///
/// Mend: the leader's barrier counts every CTA of the multicast.
/// Seen in: humming, https://github.com/inclusionAI/humming/pull/56
/// compute-sanitizer: no: written by TMA
/// ConSan: yes
/// CUTLASS: yes: aliasing
struct multicast_over_a_peers_epilogue : Kernel<64> {
  static constexpr Dim3 cluster = {2, 1, 1}, grid = {2, 1, 1};

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    init(smem, p.repaired ? 2 : 1);  // who tells the leader that an epilogue is done
    cluster::sync();
    int const rank = cluster_cta_rank();
    SharedAddr const full = shared_address(&smem.full[0]), done = shared_address(&smem.empty[0]);
    for (int tile = 0; tile < 2; ++tile) {
      if (thread_idx() == 0) {
        mbarrier_arrive_expect_tx(full, kBoxBytes);
        if (rank == 0) {
          mbarrier_wait_parity(done, tile ^ 1);
          fence_acq_rel<Scope::gpu>();  // acquires what the peer has released
          tma_load_multicast(at(smem, 0, 0), p.in_map, TmaCoordinate{32 * tile, 0}, full, 3);
        }
        mbarrier_wait_parity(full, tile);
      } else if (warp_id() == 1) {
        mbarrier_wait_parity(full, tile);
        float const x = ld_shared<float>(at(smem, 0, lane_id()));
        st_shared(at(smem, 0, lane_id()), 2 * x);  // the epilogue's staging
        st_global(p.out + 32 * (2 * tile + rank) + lane_id(),
                  ld_shared<float>(at(smem, 0, lane_id())));
        fence_proxy_async_shared();
        warp::sync();
        if (lane_id() == 0 && (rank == 0 || p.repaired))
          mbarrier_arrive_cluster_release(mapa(done, 0));
      }
    }
    cluster::sync();
  }
};

// Report:
//   05_clusters/multicast_over_a_peers_epilogue.hpp:33: kernel multicast_over_a_peers_epilogue, CTA
//     (0, 0, 0), warp 0, lane 0: async_overwrite: cp.async.bulk.tensor writes row 0, column 0 of
//     stage 0 of tile of CTA 1 of the cluster while a cp.async.bulk.tensor into it is in flight
//     that warp 0 lane 0 of CTA 0 of the cluster issued
//     (05_clusters/multicast_over_a_peers_epilogue.hpp:33): a wait for element 0 of full of CTA 1
//     of the cluster, on which it completes, by a thread of that CTA, an arrival of its on an
//     mbarrier of CTA 0 after that, and a wait for it there would order them
//   05_clusters/multicast_over_a_peers_epilogue.hpp:37: kernel multicast_over_a_peers_epilogue, CTA
//     (1, 0, 0), warp 1, lane 0: mbarrier_misuse: a wait for phase 0 of element 0 of full of CTA 1
//     of the cluster may come when phase 1 is complete, too: nothing has that one wait for this
//     thread, which then waits for phase 2: an arrival after the wait, without which phase 1 is not
//     complete, would order them

}  // namespace tegula::museum
