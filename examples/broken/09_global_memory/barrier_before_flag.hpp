#pragma once

#include "../kernel.hpp"

namespace tegula::broken {

/// A thread that sets a flag for its CTA does so after a barrier of the CTA.
///
/// Thread 0's fence orders what thread 0 knows of. Of the other warp's stores it knows nothing.
///
/// PTX ISA: "Release and Acquire Patterns"; "Causality order".
struct barrier_before_flag : Kernel<64> {
  static constexpr Dim3 grid = {2, 1, 1};

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage&) const {
    if (block_idx().x == 0) {
      st_global(p.out + thread_idx(), 1.0f);
      if (p.repaired) cta::sync();
      if (thread_idx() == 0) {
        fence_acq_rel<Scope::gpu>();
        atom_add(p.flags, 1u);
      }
      return;
    }
    if (thread_idx() != 0) return;
    while (atom_add(p.flags, 0u) == 0) {
    }
    fence_acq_rel<Scope::gpu>();
    st_global(p.out + 64, ld_global<float>(p.out + 63));
  }
};

// Report:
//   09_global_memory/barrier_before_flag.hpp:29: kernel barrier_before_flag, CTA (1, 0, 0), warp 0,
//     lane 0: data_race: ld.global reads byte 252 of out, which st.global of CTA (0, 0, 0), warp 1
//     writes (09_global_memory/barrier_before_flag.hpp:17), with nothing between the two CTAs that
//     orders them: a cta::sync between the first access and the fence at
//     09_global_memory/barrier_before_flag.hpp:20 would order them

}  // namespace tegula::broken
