#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// Warps of a CTA hand over in global memory as they do in shared memory: by a barrier.
///
/// Each warp reads back what the other has written.
///
/// PTX ISA: bar; "Causality Order".
struct warps_of_one_cta : Kernel<64> {
  TEGULA_DEVICE void operator()(Params const& p, SharedStorage&) const {
    st_global(p.out + thread_idx(), ld_global<float>(p.in + thread_idx()));
    if (p.repaired) cta::sync();
    float const others = ld_global<float>(p.out + (thread_idx() + 32) % 64);
    st_global(p.out + 64 + thread_idx(), others);
  }
};

// Report:
//   09_global_memory/warps_of_one_cta.hpp:16: kernel warps_of_one_cta, CTA (0, 0, 0), warp 0, lane
//     0: uninitialized_read: ld.global reads byte 128 of out, which nobody has written (32 times in
//     all)
//   09_global_memory/warps_of_one_cta.hpp:14: kernel warps_of_one_cta, CTA (0, 0, 0), warp 1, lane
//     0: data_race: st.global writes byte 128 of out, which ld.global of warp 0 lane 0 reads
//     (09_global_memory/warps_of_one_cta.hpp:16), with nothing between the two that orders them: a
//     cta::sync between them would order them (32 times in all)
//   09_global_memory/warps_of_one_cta.hpp:16: kernel warps_of_one_cta, CTA (0, 0, 0), warp 1, lane
//     0: data_race: ld.global reads byte 0 of out, which st.global of warp 0 lane 0 writes
//     (09_global_memory/warps_of_one_cta.hpp:14), with nothing between the two that orders them: a
//     cta::sync between them would order them (32 times in all)

}  // namespace tegula::broken
