#pragma once

#include "../kernel.hpp"

namespace tegula::museum {

/// A parity counts the phases of one barrier: a ring's for its stages, a single barrier's for each
/// step.
///
/// TileLang's pipeline pass gives every wait the ring's parity, (k / stages) % 2. A barrier that
/// the program itself made, outside of the ring, completes a phase in every step and needs k % 2.
/// With the ring's parity half of the waits ask for a phase that is complete already, and pass at
/// once.
///
/// Mend: the barrier's own count of phases.
/// Seen in: TileLang, https://github.com/tile-ai/tilelang/pull/3087
/// compute-sanitizer: no: written by TMA
/// ConSan: yes
/// CUTLASS: cannot be written: phases are generated
struct parity_of_the_ring : Kernel<64> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    init(smem, 32);
    SharedAddr const done = shared_address(&smem.full[0]), free = shared_address(&smem.empty[0]);
    for (int step = 0; step < 4; ++step) {
      if (thread_idx() == 0) {
        mbarrier_wait_parity(free, (step % 2) ^ 1);
        mbarrier_arrive_expect_tx(done, kBoxBytes);
        tma_load(at(smem, 0, 0, step % 2), p.in_map, TmaCoordinate{32 * (step % 2), 0}, done);
        if (step == 3) mbarrier_wait_parity(done, 1);
      } else if (warp_id() == 1) {
        mbarrier_wait_parity(done, p.repaired ? step % 2 : (step / 2) % 2);
        st_global(p.out + 32 * step + lane_id(),
                  ld_shared<float>(at(smem, 0, lane_id(), step % 2)));
        mbarrier_arrive(free);
      }
    }
  }
};

// Report:
//   03_tma/parity_of_the_ring.hpp:33: kernel parity_of_the_ring, CTA (0, 0, 0), warp 1, lane 0:
//     uninitialized_read: ld.shared reads row 0, column 0 of stage 1 of tile, which nobody has
//     written (32 times in all)
//   03_tma/parity_of_the_ring.hpp:26: kernel parity_of_the_ring, CTA (0, 0, 0), warp 0, lane 0:
//     mbarrier_misuse: a wait for phase 0 of element 0 of empty may come when phase 1 is complete,
//     too: nothing has that one wait for this thread, which then waits for phase 2: an arrival
//     after the wait, without which phase 1 is not complete, would order them (2 times in all)
//   03_tma/parity_of_the_ring.hpp:28: kernel parity_of_the_ring, CTA (0, 0, 0), warp 0, lane 0:
//     async_overwrite: cp.async.bulk.tensor writes row 0, column 19 of stage 1 of tile, which warp
//     1 lane 19 reads by ld.shared (03_tma/parity_of_the_ring.hpp:33), and nothing orders that
//     before: a wait for phase 1 of element 0 of full, of parity 1, on which it completes, by warp
//     1 lane 19 before the read would order them (2 times in all)
//   03_tma/parity_of_the_ring.hpp:27: kernel parity_of_the_ring, CTA (0, 0, 0), warp 0, lane 0:
//     mbarrier_misuse: mbarrier.arrive.expect_tx on element 0 of full, which has had the one
//     arrival of a phase that its init (broken/kernel.hpp:77) says (it waits for 2048 bytes): its
//     count is too small, or this arrival is one too many
//   03_tma/parity_of_the_ring.hpp:28: kernel parity_of_the_ring, CTA (0, 0, 0), warp 0, lane 0:
//     exited_cta: the CTA exits while a cp.async.bulk.tensor into its shared memory, from row 0,
//     column 0 of stage 1 of tile on, has not been waited for: a wait for element 0 of full, on
//     which it completes, would order them

}  // namespace tegula::museum
