#pragma once

#include "../kernel.hpp"

namespace tegula::museum {

/// `__syncthreads()` waits for every warp of the CTA, also for those with another job.
///
/// FlashInfer's small GEMM, tinygemm2, has four warps that multiply and eight that load. The four
/// reduce through shared memory at the end, with a `__syncthreads()` between writes and reads. The
/// other eight never come to it. On some machines it worked, on the H100s of the project's own
/// tests it hung now and then.
///
/// Mend: a named barrier with the number of threads that come to it.
/// Seen in: FlashInfer, https://github.com/flashinfer-ai/flashinfer/pull/2996
/// compute-sanitizer: synccheck
/// ConSan: inside a partition
/// CUTLASS: cannot be written: barriers are generated
struct half_the_block_syncs : Kernel<128> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    if (warp_id() >= 2) return;  // these warps load; nothing is left to load
    st_shared(at(smem, warp_id(), lane_id()), ld_global<float>(p.in + thread_idx()));
    if (p.repaired) {
      cta::bar_sync(1, 64);  // a barrier of the two warps that reduce
    } else {
      cta::sync();
    }
    if (warp_id() == 0)
      st_global(p.out + lane_id(), ld_shared<float>(at(smem, 0, lane_id())) +
                                       ld_shared<float>(at(smem, 1, lane_id())));
  }
};

// Report:
//   01_threads/half_the_block_syncs.hpp:26: kernel half_the_block_syncs, CTA (0, 0, 0): deadlock:
//     warps 0-1 wait at barrier 0 (01_threads/half_the_block_syncs.hpp:26), where 64 of 128 threads
//     have arrived; warps 2-3 exited

}  // namespace tegula::museum
