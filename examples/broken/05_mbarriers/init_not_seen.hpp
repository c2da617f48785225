#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// An mbarrier is used after a barrier that follows its init.
///
/// Warp 1 is at the mbarrier before thread 0 has made it.
///
/// PTX ISA: mbarrier.init.
struct init_not_seen : Kernel<64> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    SharedAddr const full = shared_address(&smem.full[0]);
    if (thread_idx() == 32) st_shared(at(smem, 0, 0), 1.0f);
    if (thread_idx() == 0) mbarrier_init(full, 1);
    if (p.repaired) cta::sync();
    if (thread_idx() == 32) mbarrier_arrive(full);
    if (p.repaired) mbarrier_wait_parity(full, 0);
  }
};

// Report:
//   05_mbarriers/init_not_seen.hpp:18: kernel init_not_seen, CTA (0, 0, 0), warp 1, lane 0:
//     mbarrier_misuse: mbarrier.arrive on element 0 of full, before which nothing orders its init
//     by warp 0 lane 0 (05_mbarriers/init_not_seen.hpp:16): a cta::sync after the init would order
//     them

}  // namespace tegula::broken
