#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// An mbarrier is invalidated after everyone has seen its last phase.
///
/// Thread 0 has; the others may still be waiting.
///
/// PTX ISA: mbarrier.inval.
struct invalidated_too_early : Kernel<64> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    init(smem);
    SharedAddr const empty = shared_address(&smem.empty[0]);
    mbarrier_arrive(empty);
    mbarrier_wait_parity(empty, 0);
    if (p.repaired) cta::sync();
    if (thread_idx() == 0) mbarrier_inval(empty);
  }
};

// Report:
//   05_mbarriers/invalidated_too_early.hpp:19: kernel invalidated_too_early, CTA (0, 0, 0), warp 0,
//     lane 0: mbarrier_misuse: mbarrier.inval of element 0 of empty, and nothing orders it after
//     the mbarrier.try_wait by warp 0 lane 1 (05_mbarriers/invalidated_too_early.hpp:17): a barrier
//     after the last wait for it would order them

}  // namespace tegula::broken
