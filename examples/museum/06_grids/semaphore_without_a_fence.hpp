#pragma once

#include "../kernel.hpp"

namespace tegula::museum {

/// What a CTA leaves for another in global memory is fenced before the flag is set.
///
/// nvFuser's split-K reductions hand a tile from CTA to CTA by a semaphore. All threads store their
/// part, meet at `__syncthreads()`, and thread 0 sets the semaphore. The barrier is one of the CTA:
/// for other CTAs nothing is ordered until a `__threadfence()` stands between the stores and the
/// semaphore. PyTorch and Kokkos had the same gap.
///
/// Mend: a fence of the GPU between the CTA's barrier and the semaphore.
/// Seen in: nvFuser, https://github.com/NVIDIA/Fuser/pull/2391
/// Seen in: Kokkos, https://github.com/kokkos/kokkos/issues/2681
/// compute-sanitizer: no: global memory
/// ConSan: no: global memory
/// CUTLASS: not documented
struct semaphore_without_a_fence : Kernel<64> {
  static constexpr Dim3 grid = {2, 1, 1};

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage&) const {
    bool const first = block_idx().x == 0;
    if (!first && thread_idx() == 0) {
      while (atom_add(p.flags, 0u) == 0) {
      }
      fence_acq_rel<Scope::gpu>();
    }
    cta::sync();
    float const sum = first ? 0.0f : ld_global<float>(p.out + thread_idx());
    st_global(p.out + thread_idx(), sum + ld_global<float>(p.in + thread_idx()));
    cta::sync();
    if (first && thread_idx() == 0) {
      if (p.repaired) fence_acq_rel<Scope::gpu>();
      atom_exch(p.flags, 1u);
    }
  }
};

// Report:
//   06_grids/semaphore_without_a_fence.hpp:32: kernel semaphore_without_a_fence, CTA (1, 0, 0),
//     warp 0: data_race: st.global writes byte 0 of out, which st.global of CTA (0, 0, 0), warp 0
//     writes, with nothing between the two CTAs that orders them: a fence_acq_rel<Scope::gpu> and
//     then an atomic by the first, an atomic that sees that one's and then such a fence by the
//     second, or two launches, would order them (2 times in all)

}  // namespace tegula::museum
