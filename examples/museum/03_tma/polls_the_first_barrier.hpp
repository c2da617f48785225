#pragma once

#include "../kernel.hpp"

namespace tegula::museum {

/// Each stage of a ring has a barrier of its own, and a consumer waits for the one of its stage.
///
/// TensorRT-LLM's tinygemm computes the address of the barrier once, before the loop, for the first
/// stage. The loop goes from stage to stage, and the spin goes on polling the first barrier, which
/// has been complete for long. As long as the copies arrive in time nobody notices. Beside a
/// workload that keeps the memory busy they do not, and the GEMM's results are wrong.
///
/// Mend: take the address of the barrier in the loop, as that of the stage.
/// Seen in: TensorRT-LLM, https://github.com/NVIDIA/TensorRT-LLM/pull/15338
/// compute-sanitizer: no: written by TMA
/// ConSan: yes
/// CUTLASS: cannot be written: barriers are generated
struct polls_the_first_barrier : Kernel<64> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    init(smem, 32);
    for (int step = 0; step < 4; ++step) {
      int const stage = step % 2, phase = step / 2;
      SharedAddr const full = shared_address(&smem.full[stage]),
                       empty = shared_address(&smem.empty[stage]);
      if (thread_idx() == 0) {
        mbarrier_wait_parity(empty, phase ^ 1);
        mbarrier_arrive_expect_tx(full, kBoxBytes);
        tma_load(at(smem, 0, 0, stage), p.in_map, TmaCoordinate{32 * (step % 2), 8 * (step / 2)},
                 full);
        if (step >= 2) mbarrier_wait_parity(full, phase);
      } else if (warp_id() == 1) {
        SharedAddr const ready = p.repaired ? full : shared_address(&smem.full[0]);
        mbarrier_wait_parity(ready, phase);
        st_global(p.out + 32 * step + lane_id(), ld_shared<float>(at(smem, 0, lane_id(), stage)));
        mbarrier_arrive(empty);
      }
    }
  }
};

// Report:
//   03_tma/polls_the_first_barrier.hpp:35: kernel polls_the_first_barrier, CTA (0, 0, 0), warp 1,
//     lane 0: async_read_early: ld.shared reads row 0, column 0 of stage 1 of tile while a
//     cp.async.bulk.tensor into it is in flight that warp 0 lane 0 issued
//     (03_tma/polls_the_first_barrier.hpp:29): a wait for element 1 of full, on which it completes,
//     would order them (64 times in all)
//   03_tma/polls_the_first_barrier.hpp:27: kernel polls_the_first_barrier, CTA (0, 0, 0), warp 0,
//     lane 0: mbarrier_misuse: a wait for phase -1 of element 1 of empty may come when phase 0 is
//     complete, too: nothing has that one wait for this thread, which then waits for phase 1: an
//     arrival after the wait, without which phase 0 is not complete, would order them (2 times in
//     all)
//   03_tma/polls_the_first_barrier.hpp:28: kernel polls_the_first_barrier, CTA (0, 0, 0), warp 0,
//     lane 0: mbarrier_misuse: mbarrier.arrive.expect_tx on element 1 of full, which has had the
//     one arrival of a phase that its init (broken/kernel.hpp:77) says (it waits for 2048 bytes):
//     its count is too small, or this arrival is one too many
//   03_tma/polls_the_first_barrier.hpp:29: kernel polls_the_first_barrier, CTA (0, 0, 0), warp 0,
//     lane 0: async_overwrite: cp.async.bulk.tensor writes row 0, column 0 of stage 1 of tile while
//     a cp.async.bulk.tensor into it is in flight that warp 0 lane 0 issued
//     (03_tma/polls_the_first_barrier.hpp:29): a wait for element 1 of full, on which it completes,
//     would order them
//   03_tma/polls_the_first_barrier.hpp:29: kernel polls_the_first_barrier, CTA (0, 0, 0), warp 0,
//     lane 0: exited_cta: the CTA exits while a cp.async.bulk.tensor into its shared memory, from
//     row 0, column 0 of stage 1 of tile on, has not been waited for: a wait for element 1 of full,
//     on which it completes, would order them (2 times in all)

}  // namespace tegula::museum
