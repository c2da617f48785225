#pragma once

#include "../kernel.hpp"

namespace tegula::museum {

/// Who arrives at a named barrier without waiting must not come back before it is complete.
///
/// vLLM's latent attention has load warps that wait at a named barrier for the compute warps to be
/// done with a tile. Where a split has no keys, the compute warps return early: they arrive, do not
/// wait, and take the next tile. With several empty tiles in a row their second arrival counts for
/// the first barrier. It is complete without the load warps, which then wait for ever. The repair
/// is to wait.
///
/// Mend: arrive and wait.
/// Seen in: vLLM, https://github.com/vllm-project/vllm/pull/26026
/// compute-sanitizer: synccheck
/// ConSan: inside a partition
/// CUTLASS: cannot be written: barriers are generated
struct arrives_twice : Kernel<64> {
  static constexpr bool at_every_schedule = false;

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage&) const {
    for (int tile = 0; tile < 2; ++tile) {
      bool const computes = warp_id() == 0;
      if (computes && !p.repaired) {
        cta::bar_arrive(1, 64);  // no keys: nothing to compute
      } else {
        cta::bar_sync(1, 64);
      }
    }
    st_global(p.out + thread_idx(), 0.0f);
  }
};

// Report:
//   01_threads/arrives_twice.hpp:29: kernel arrives_twice, CTA (0, 0, 0): deadlock: warp 1 waits at
//     barrier 1 (01_threads/arrives_twice.hpp:29), where 32 of 64 threads have arrived, and warp 0
//     has arrived twice for one use of it (01_threads/arrives_twice.hpp:27); warp 0 exited

}  // namespace tegula::museum
