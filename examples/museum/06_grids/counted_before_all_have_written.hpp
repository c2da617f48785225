#pragma once

#include "../kernel.hpp"

namespace tegula::museum {

/// A thread that speaks for its CTA first meets the CTA's other threads.
///
/// RAFT's top-k selection counts the CTAs that are done, and the last one reads the histogram that
/// all of them have added to. Thread 0 counted its CTA; whether the other warps had finished, it
/// did not ask. A test of the project had been flaky for a long time.
///
/// Mend: a barrier of the CTA before the count.
/// Seen in: RAFT, https://github.com/NVIDIA/raft/pull/3041
/// compute-sanitizer: no: global memory
/// ConSan: no: global memory
/// CUTLASS: not documented
struct counted_before_all_have_written : Kernel<64> {
  static constexpr Dim3 grid = {2, 1, 1};

  TEGULA_DEVICE void operator()(Params const& p, SharedStorage& smem) const {
    int const cta = block_idx().x;
    st_global(p.out + 64 * cta + thread_idx(), ld_global<float>(p.in + 64 * cta + thread_idx()));
    if (p.repaired) cta::sync();  // every thread has written
    if (thread_idx() == 0) {
      fence_acq_rel<Scope::gpu>();
      st_shared(at(smem, 0, 0), static_cast<float>(atom_add(p.flags, 1u)));
      fence_acq_rel<Scope::gpu>();
    }
    cta::sync();
    if (ld_shared<float>(at(smem, 0, 0)) == 1)
      st_global(p.out + 128 + thread_idx(), ld_global<float>(p.out + thread_idx()) +
                                                ld_global<float>(p.out + 64 + thread_idx()));
  }
};

// Report:
//   06_grids/counted_before_all_have_written.hpp:32: kernel counted_before_all_have_written, CTA
//     (1, 0, 0), warp 0: data_race: ld.global reads byte 4 of out, which st.global of CTA (0, 0,
//     0), warp 0 writes (06_grids/counted_before_all_have_written.hpp:23), with nothing between the
//     two CTAs that orders them: a cta::sync between the first access and the fence at
//     06_grids/counted_before_all_have_written.hpp:26 would order them (2 times in all)

}  // namespace tegula::museum
