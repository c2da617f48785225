#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// Only mbarrier instructions touch an mbarrier's eight bytes.
///
/// Zeroing shared memory, a word a thread, goes a little further than the tile.
///
/// PTX ISA: "Opaque Type mbarrier object".
struct mbarrier_as_data : Kernel<128> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    if (thread_idx() == 0) mbarrier_init(shared_address(&smem.full[0]), 128);
    cta::sync();
    int const words = p.repaired ? 512 : 514;
    for (int i = thread_idx(); i < words; i += threads) st_shared(at(smem, 0, i), 0.0f);
    mbarrier_arrive(shared_address(&smem.full[0]));
    mbarrier_wait_parity(shared_address(&smem.full[0]), 0);
  }
};

// Report:
//   05_mbarriers/mbarrier_as_data.hpp:17: kernel mbarrier_as_data, CTA (0, 0, 0), warp 0, lane 0:
//     mbarrier_misuse: st.shared writes element 0 of full, which is an mbarrier
//     (05_mbarriers/mbarrier_as_data.hpp:14): only mbarrier instructions may touch it (2 times in
//     all)

}  // namespace tegula::broken
